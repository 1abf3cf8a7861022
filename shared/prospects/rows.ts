/** Writes the rows of prospects and notes with their delta entries, and finds notes and appointments by id. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { FactFields } from "#shared/company-index/facts.ts";
import {
  type NoteDeltaOptions,
  noteDelta,
  type ProspectDeltaOptions,
  prospectDelta,
} from "#shared/company-index/write/entries.ts";
import type { ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Condition, Item, Write } from "#shared/db/expression.ts";
import { absent, all, any, below, equals, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { Reads } from "#shared/db/reads.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { holdersOf } from "#shared/prospects/assignments.ts";
import { indexEntry, indexNote } from "#shared/prospects/indexed.ts";
import { isPublished, isVisible } from "#shared/prospects/read.ts";
import {
  type LastStatusChange,
  prospectItem,
  type StoredAppointment,
  type StoredNote,
  type StoredProspect,
  storedProspect,
} from "#shared/prospects/stored.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const insertProspect = (prospect: StoredProspect): Write[] => [
  { put: { ...keys.prospect(prospect.companyId, prospect.id), ...prospectItem(prospect) }, when: absent },
  ...prospectDelta(prospect.companyId, indexEntry(prospect), null, { fact: factOf(prospect) }),
];

/** Returns the fact of this version: the creation or the status change of the prospect. Undefined for any other change. */
function factOf({ version, createdBy, lastStatusChange }: StoredProspect): FactFields | undefined {
  const change = lastStatusChange?.version === version ? lastStatusChange : undefined;
  if (version === 1) return { by: createdBy, ...(change?.occurredAt !== undefined && { at: timeOf(change) }) };
  return change === undefined ? undefined : { by: change.changedBy, at: timeOf(change) };
}

/** Returns when the user made the change, which may be before the service received it. */
const timeOf = ({ occurredAt, createdAt }: { readonly occurredAt?: string | undefined; readonly createdAt: string }) =>
  Date.parse(occurredAt ?? createdAt);

export const factOfAppointment = (appointment: StoredAppointment): FactFields | undefined =>
  appointment.createdBy === null ? undefined : { by: appointment.createdBy, at: timeOf(appointment) };

/** The fact of a status change that is only added to the history, because the prospect has another assignee now. */
export const pastFact = (entry: LastStatusChange): FactFields => ({
  by: entry.changedBy,
  at: timeOf(entry),
  past: entry.status?.id ?? 0,
});

/**
 * The writes fail if the row has changed since `current` was read, or does not meet `when`. `appointment` describes the appointment that
 * the same transaction writes. Without `fact`, the status change in `next` is the fact.
 */
export const replaceProspect = (
  current: StoredProspect,
  next: StoredProspect,
  when?: Condition,
  { appointment, fact = factOf(next) }: Pick<ProspectDeltaOptions, "appointment" | "fact"> = {},
): Write[] => [
  {
    put: { ...keys.prospect(next.companyId, next.id), ...prospectItem(next) },
    when: all(equals("version", current.version), ...(when === undefined ? [] : [when])),
  },
  ...prospectDelta(next.companyId, indexEntry(next), current.assignedToUserId, {
    isRestored: current.deletedAt !== undefined && next.deletedAt === undefined,
    appointment,
    fact,
  }),
];

const factOfNote = (note: StoredNote): FactFields | undefined =>
  note.createdBy === null
    ? undefined
    : { by: note.createdBy, ...(note.occurredAt !== undefined && { at: timeOf(note) }) };

/** Pass `assignee` only if a condition of the same transaction ensures that the prospect has this assignee. */
const loggedNote = (note: StoredNote, assignee: number | null | undefined): NoteDeltaOptions => ({
  createdAt: Date.parse(note.createdAt),
  assignee,
});

/** `loggedNote` explains `assignee`. */
export const insertNote = (note: StoredNote, assignee?: number | null): Write[] => [
  {
    update: attachedKeys.noteCount(note.companyId, note.prospectId),
    change: { set: { type: "noteCount", prospectId: note.prospectId }, add: { notes: 1 } },
    when: any(missing("notes"), below("notes", limits.notesPerProspect)),
    orThrow: tooManyNotes,
  },
  { put: { ...keyOfNote(note), ...note } },
  ...noteDelta(note.companyId, indexNote(note), { ...loggedNote(note, assignee), fact: factOfNote(note) }),
  noteLocatorWrite(note),
];

const tooManyNotes = (): ApiError =>
  new ApiError("conflict", `A prospect may have at most ${limits.notesPerProspect} notes.`);

export const replaceNote = (current: StoredNote, next: StoredNote, assignee?: number | null): Write[] => [
  { put: { ...keyOfNote(next), ...next }, when: equals("version", current.version) },
  ...noteDelta(next.companyId, indexNote(next), loggedNote(next, assignee)),
];

/** Removes a note. The transaction must also contain `changeOfNotesOf`. An imported note was not counted, so it is not subtracted. */
export const removeNote = (note: StoredNote, prospect: StoredProspect, nowMs: number): Write[] => [
  { remove: keyOfNote(note), when: equals("version", note.version) },
  ...noteDelta(
    note.companyId,
    { ...indexNote(note), version: note.version + 1, text: null },
    { ...loggedNote(note, prospect.assignedToUserId), holders: holdersOf(prospect, note, nowMs) },
  ),
  { remove: attachedKeys.noteLocator(note.companyId, note.id) },
  ...(note.importId === undefined
    ? [{ update: attachedKeys.noteCount(note.companyId, note.prospectId), change: { add: { notes: -1 } } }]
    : []),
];

const keyOfNote = ({ companyId, prospectId, createdAt, id }: StoredNote) =>
  attachedKeys.note(companyId, prospectId, createdAt, id);

/** A locator is the row by which a note or appointment is found by its id. */
const Locator = z.object({ type: z.literal("locator"), prospectId: Id });

/** Fails if the id is in use, so the other writes of the transaction need no condition. */
export const locatorWrite = (key: keys.Key, prospectId: number): Write => ({
  put: { ...key, type: "locator", prospectId },
  when: absent,
});

export async function findLocator(table: Reads, key: keys.Key): Promise<number | undefined> {
  const found = await table.get(key);
  return found === undefined ? undefined : Locator.parse(found).prospectId;
}

export const StoredNoteLocator = z.object({ id: Id, prospectId: Id, createdAt: Timestamp });
type NoteLocator = Omit<z.infer<typeof StoredNoteLocator>, "id">;

export const noteLocatorWrite = ({ companyId, id, prospectId, createdAt }: StoredNote): Write => ({
  put: { ...attachedKeys.noteLocator(companyId, id), type: "locator", id, prospectId, createdAt },
  when: absent,
});

const PackedLocator = z.tuple([Id, Id]);
export const PackedLocators = z.object({ createdAt: Timestamp, bytes: z.instanceof(Uint8Array) });

export const packNoteLocators = (
  companyId: number,
  createdAt: string,
  notes: readonly { id: number; prospectId: number }[],
): (keys.Key & Item)[] =>
  [...Map.groupBy(notes, ({ id }) => keys.blockOf(id))].map(([block, own]) => {
    const bytes = packed(own.map(({ id, prospectId }): z.infer<typeof PackedLocator> => [id, prospectId]));
    return { ...attachedKeys.noteLocators(companyId, block), type: "noteLocators", createdAt, bytes };
  });

/** A deletion of a note does not change packed rows, so a locator from a packed row may belong to a deleted note. */
export async function findNoteLocators(
  table: Reads,
  companyId: number,
  ids: readonly number[],
): Promise<Map<number, NoteLocator>> {
  const blocks = [...new Set(ids.map(keys.blockOf))];
  const items = await table.batchGet([
    ...[...new Set(ids)].map((id) => attachedKeys.noteLocator(companyId, id)),
    ...blocks.map((block) => attachedKeys.noteLocators(companyId, block)),
  ]);
  const wanted = new Set(ids);
  const locators = new Map<number, NoteLocator>();
  for (const item of items.filter(({ type }) => type === "noteLocators")) {
    const { createdAt, bytes } = PackedLocators.parse(item);
    for (const [id, prospectId] of unpacked(z.array(PackedLocator), bytes)) {
      if (wanted.has(id)) locators.set(id, { prospectId, createdAt });
    }
  }
  for (const item of items.filter(({ type }) => type === "locator")) {
    const { id, prospectId, createdAt } = StoredNoteLocator.parse(item);
    locators.set(id, { prospectId, createdAt });
  }
  return locators;
}

/** Stands for a missing note or appointment. The request then reads as many rows, and takes as long, as for a hidden one. */
export const NOWHERE = { prospectId: 0, createdAt: "" } as const;

/** Undefined if a row is missing, or if the caller does not see the prospect now: a past assignment gives no right to existing rows. */
export async function findAttached(
  { table }: ReadContext,
  caller: Caller,
  prospectId: number,
  key: keys.Key,
): Promise<{ prospect: StoredProspect; item: Item } | undefined> {
  const items = await table.batchGet([keys.prospect(caller.companyId, prospectId), key]);
  const item = items.find(({ type }) => type !== "prospect");
  const row = items.find(({ type }) => type === "prospect");
  // A failed import deletes the rows of its prospects before the locators of its notes, so a note may be found without its prospect.
  if (row === undefined) return undefined;
  const prospect = storedProspect(row);
  const exists = item !== undefined && isVisible(caller, prospect);
  return exists && (await isPublished(table, caller.companyId, prospect.importId)) ? { prospect, item } : undefined;
}
