/** Writes the rows of prospects and notes with their entries in the company index, and finds notes and appointments by id. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { noteDelta, prospectDelta } from "#shared/company-index/delta.ts";
import type { ApiContext } from "#shared/context.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import { absent, any, below, equals, missing } from "#shared/db/expression.ts";
import type { Item, Write } from "#shared/db/item.ts";
import { blockOf, type Key, keys } from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { indexEntry, indexNote } from "#shared/prospects/indexed.ts";
import { isPublished, isVisible } from "#shared/prospects/read.ts";
import { prospectItem, type StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const insertProspect = (prospect: StoredProspect): Write[] => [
  { put: { ...keys.prospect(prospect.companyId, prospect.id), ...prospectItem(prospect) }, when: absent },
  ...prospectDelta(prospect.companyId, indexEntry(prospect)),
];

/** `next` has the next version. Fails its condition when somebody wrote the row since `current` was read. */
export const replaceProspect = (current: StoredProspect, next: StoredProspect): Write[] => [
  {
    put: { ...keys.prospect(next.companyId, next.id), ...prospectItem(next) },
    when: equals("version", current.version),
  },
  ...prospectDelta(next.companyId, indexEntry(next)),
];

/** The first one fails its condition where the prospect has as many notes as it may have. */
export const insertNote = (note: StoredNote): Write[] => [
  {
    update: besideKeys.noteCount(note.companyId, note.prospectId),
    change: { set: { type: "noteCount", prospectId: note.prospectId }, add: { notes: 1 } },
    when: any(missing("notes"), below("notes", limits.notesPerProspect)),
  },
  { put: { ...keyOfNote(note), ...note }, when: absent },
  ...noteDelta(note.companyId, indexNote(note)),
  newNotePlace(note),
];

export const replaceNote = (current: StoredNote, next: StoredNote): Write[] => [
  { put: { ...keyOfNote(next), ...next }, when: equals("version", current.version) },
  ...noteDelta(next.companyId, indexNote(next)),
];

/** A note that came with an import was not counted. */
export const removeNote = (note: StoredNote): Write[] => [
  { remove: keyOfNote(note), when: equals("version", note.version) },
  ...noteDelta(note.companyId, { ...indexNote(note), version: note.version + 1, text: null }),
  { remove: besideKeys.notePlace(note.companyId, note.id) },
  ...(note.importId === undefined
    ? [{ update: besideKeys.noteCount(note.companyId, note.prospectId), change: { add: { notes: -1 } } }]
    : []),
];

const keyOfNote = ({ companyId, prospectId, createdAt, id }: StoredNote) =>
  besideKeys.note(companyId, prospectId, createdAt, id);

const Place = z.object({ type: z.literal("place"), prospectId: Id });

/** Written with the row that it leads to, and removed with it. */
export const newPlaceWrite = (place: Key, prospectId: number): Write => ({
  put: { ...place, type: "place", prospectId },
  when: absent,
});

/** Id of the prospect that it hangs on; `undefined` when there is no such thing. */
export async function findPlace(table: Table, place: Key): Promise<number | undefined> {
  const found = await table.get(place);
  return found === undefined ? undefined : Place.parse(found).prospectId;
}

/** What leads to a note's row: notes stand in the order of their making. */
export interface NoteSpot {
  readonly prospectId: number;
  readonly createdAt: string;
}

const NotePlace = z.object({ id: Id, prospectId: Id, createdAt: Timestamp });

export const newNotePlace = ({ companyId, id, prospectId, createdAt }: StoredNote): Write => ({
  put: { ...besideKeys.notePlace(companyId, id), type: "place", id, prospectId, createdAt },
  when: absent,
});

/** Note and prospect. */
const PackedPlace = z.tuple([Id, Id]);
const NotePlaces = z.object({ createdAt: Timestamp, bytes: z.instanceof(Uint8Array) });

/** The places of an import's notes: one row for each block of ids, since a place of its own would cost a note as much again. */
export const packPlaces = (
  companyId: number,
  createdAt: string,
  notes: readonly { id: number; prospectId: number }[],
): (Key & Item)[] =>
  [...Map.groupBy(notes, ({ id }) => blockOf(id))].map(([block, own]) => {
    const bytes = packed(own.map(({ id, prospectId }): z.infer<typeof PackedPlace> => [id, prospectId]));
    return { ...besideKeys.notePlaces(companyId, block), type: "notePlaces", createdAt, bytes };
  });

/** By id: places of their own, and those among an import's. What is removed has none, or one that leads to nothing. */
export async function findNotePlaces(
  table: Table,
  companyId: number,
  ids: readonly number[],
): Promise<Map<number, NoteSpot>> {
  const blocks = [...new Set(ids.map(blockOf))];
  const items = await table.batchGet([
    ...[...new Set(ids)].map((id) => besideKeys.notePlace(companyId, id)),
    ...blocks.map((block) => besideKeys.notePlaces(companyId, block)),
  ]);
  const wanted = new Set(ids);
  const spots = new Map<number, NoteSpot>();
  for (const item of items.filter(({ type }) => type === "notePlaces")) {
    const { createdAt, bytes } = NotePlaces.parse(item);
    for (const [id, prospectId] of unpacked(z.array(PackedPlace), bytes)) {
      if (wanted.has(id)) spots.set(id, { prospectId, createdAt });
    }
  }
  for (const item of items.filter(({ type }) => type === "place")) {
    const { id, prospectId, createdAt } = NotePlace.parse(item);
    spots.set(id, { prospectId, createdAt });
  }
  return spots;
}

/** The row and its prospect; `undefined` when there is no such row for the caller. */
export async function findAttached(
  { table }: ApiContext,
  caller: Caller,
  prospectId: number,
  key: Key,
): Promise<{ prospect: StoredProspect; item: Item } | undefined> {
  const items = await table.batchGet([keys.prospect(caller.companyId, prospectId), key]);
  const item = items.find(({ type }) => type !== "prospect");
  const row = items.find(({ type }) => type === "prospect");
  // The rows of an import that failed are gone, and its notes' places may be there for a moment longer.
  if (row === undefined) return undefined;
  const prospect = StoredProspect.parse(row);
  const isThere = item !== undefined && isVisible(caller, prospect);
  return isThere && (await isPublished(table, caller.companyId, prospect.importId)) ? { prospect, item } : undefined;
}
