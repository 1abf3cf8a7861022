/**
 * The unflushed entries of a company index. Each write of a prospect or note adds an entry, which never changes. Changes of territories,
 * statuses, tags and users add entries that are only for the change log.
 */
import * as z from "zod/mini";
import { type Change, SharedChange } from "#shared/company-index/change-log.ts";
import { type Fact, factsOfProspect } from "#shared/company-index/facts.ts";
import { HEAD_TYPE, type Head, readHead } from "#shared/company-index/manifest.ts";
import { type IndexEntry, isTombstone, type NoteEntry, unmarked } from "#shared/company-index/record.ts";
import type { Delta, FlushedVersions } from "#shared/company-index/versions.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { TableBusy } from "#shared/errors.ts";

export interface Unflushed {
  readonly head: Head;
  /** Sum of the weights of the entries (see `weightOf`). */
  readonly weight: number;
  readonly entries: readonly IndexEntry[];
  readonly notes: readonly NoteEntry[];
  readonly changes: readonly Change[];
  readonly facts: readonly Fact[];
  readonly keys: readonly Key[];
  /** Sort keys of the entries with a long text. It is in a separate row, and their text in `entries` and `notes` is empty. */
  readonly withLongText: ReadonlySet<string>;
}

/** The `type` of an entry. The event source of the flush function selects stream records by it. */
export const DELTA_TYPE = "delta";

/** The fields of a prospect's entry, as a tuple without field names. Entries must be short, because every read reads all entries. */
export const DeltaFields = z.tuple([
  z.number(),
  z.nullable(z.number()),
  z.nullable(z.number()),
  z.array(z.number()),
  z.nullable(z.string()),
  z.nullable(z.number()),
  z.nullable(z.number()),
  z.string(),
  z.string(),
]);

const AheadFields = z.array(z.tuple([z.number(), z.number(), z.number()]));

/** Deletes flushed entries. Deletes their long texts first, because no later flush would find a text whose entry is already deleted. */
export async function removeUnflushed(
  table: Table,
  companyId: number,
  { keys: entries, withLongText }: Entries,
): Promise<void> {
  const texts = entries.filter(({ sk }) => withLongText.has(sk));
  await table.batchRemove(texts.map(({ sk }) => keys.deltaText(companyId, sk)));
  await table.batchRemove(entries);
}

type Entries = Pick<Unflushed, "keys" | "withLongText">;

/** Bytes of the fields and text of an entry that increase its weight by 1. */
const ENTRY_BYTES = 1_024;

/** Returns 1, plus 1 for each `ENTRY_BYTES` of fields and text. A flush starts when the sum of the weights reaches `FLUSH_ENTRIES`. */
export function weightOf(item: Item): number {
  const { row = "", note = "", ahead = "", aside = 0 } = Weighed.parse(item);
  return 1 + Math.floor((row.length + note.length + ahead.length + aside) / ENTRY_BYTES);
}

/** `aside` is the number of bytes of a text in a separate row. It is undefined if the entry contains its text. */
const Weighed = z.object({
  row: z.optional(z.string()),
  note: z.optional(z.string()),
  ahead: z.optional(z.string()),
  aside: z.optional(z.number()),
});

/** Maximum number of attempts to read entries of several pages of a Query without a change of the head meanwhile. */
const TRIES = 5;

/**
 * Reads the head and all unflushed entries with one strongly consistent Query. If the Query has several pages, repeats it until two
 * successive reads find the same version of the head, which is the last item. Otherwise, a flush between two pages could delete entries and
 * merge their part with the oldest one. No version overrides would then hide an outdated entry of an earlier page. Throws TableBusy if the
 * head changes during each attempt.
 */
export async function readUnflushed(table: Reads, companyId: number): Promise<Unflushed> {
  let { unflushed, hasPages } = await readOnce(table, companyId);
  for (let attempt = 1; hasPages; attempt++) {
    if (attempt === TRIES) throw new TableBusy(`the index of company ${companyId} kept changing`);
    const { version } = unflushed.head;
    ({ unflushed, hasPages } = await readOnce(table, companyId));
    if (unflushed.head.version === version) break;
  }
  return unflushed;
}

async function readOnce(table: Reads, companyId: number): Promise<{ unflushed: Unflushed; hasPages: boolean }> {
  const kept: Kept = { entries: [], notes: [], changes: [], facts: [] };
  let hasPages = false;
  const onNextPage = (): void => {
    hasPages = true;
  };
  const found: Key[] = [];
  const withLongText = new Set<string>();
  let head = readHead(undefined);
  let weight = 0;
  for await (const item of table.query({ ...keys.index(companyId), onNextPage })) {
    if (item.type === HEAD_TYPE) {
      head = readHead(item);
      continue;
    }
    const key = keepEntry(item, kept);
    found.push(key);
    weight += weightOf(item);
    if (item.aside !== undefined) withLongText.add(key.sk);
  }
  return { unflushed: { head, ...kept, keys: found, withLongText, weight }, hasPages };
}

export const DeltaItem = z.object({
  pk: z.string(),
  sk: z.string(),
  type: z.literal(DELTA_TYPE),
  row: z.optional(z.string()),
  note: z.optional(z.string()),
  /** The source id, as `marked` writes it. Undefined if a separate row has it, together with the long text. */
  source: z.optional(z.string()),
  appointments: z.optional(z.int()),
  /** The upcoming appointments (see `Ahead`) as JSON text. Undefined if there was none. */
  ahead: z.optional(z.string()),
  /** The assignee before the change, or 0 if there was none. Undefined in an entry of a note, territory, status, tag or user. */
  before: z.optional(z.int()),
  /** Milliseconds from the creation of the prospect to its `updatedAt`. Undefined for 0. */
  updated: z.optional(z.int()),
  /** 1 if the change restores a deleted prospect. */
  restored: z.optional(z.int()),
  appointment: z.optional(
    z.object({
      id: z.int(),
      version: z.int(),
      isDeleted: z.boolean(),
      holders: z.optional(z.array(z.int())),
    }),
  ),
  /** The creation time of a note, in milliseconds since 1970. */
  createdAt: z.optional(z.int()),
  /** The assignee of the note's prospect, or 0 if it has none. Undefined unless the transaction has checked the assignee. */
  assignee: z.optional(z.int()),
  /** The users whose devices may have a copy of the deleted note. Undefined if they are not known. */
  holders: z.optional(z.array(z.int())),
  /** See `FactFields`. */
  by: z.optional(z.int()),
  at: z.optional(z.int()),
  past: z.optional(z.int()),
  /** A flush copies this change to the change log, but not to the index. */
  shared: z.optional(SharedChange),
});
const prospectKey = /^D#(\d+)#(\d+)$/;
const noteKey = /^D#(\d+)#N(\d+)#(\d+)$/;

interface Kept {
  readonly entries: IndexEntry[];
  readonly notes: NoteEntry[];
  readonly changes: Change[];
  readonly facts: Fact[];
}

function keepEntry(item: Item, { entries, notes, changes, facts }: Kept): Key {
  const { pk, sk, row, note, source = "", before, createdAt, ...more } = DeltaItem.parse(item);
  const ofNote = noteKey.exec(sk);
  const ofProspect = prospectKey.exec(sk);
  if (ofNote !== null) {
    const [prospectId, noteId, version] = [Number(ofNote[1]), Number(ofNote[2]), Number(ofNote[3])];
    notes.push({ prospectId, noteId, version, text: note ?? null });
    const isDeleted = note === undefined;
    const { assignee, holders, by, at = createdAt } = more;
    if (by !== undefined && at !== undefined)
      facts.push({ kind: "note", userId: by, at, statusId: null, prospectId, record: noteId });
    changes.push({ kind: "note", id: noteId, version, prospectId, createdAt, assignee, holders, isDeleted });
  } else if (ofProspect !== null) {
    const [id, version] = [Number(ofProspect[1]), Number(ofProspect[2])];
    if (more.shared !== undefined) {
      changes.push(more.shared);
      return { pk, sk };
    }
    const { appointments = 0, ahead = "[]", updated } = more;
    const booked = { appointments, ahead: AheadFields.parse(JSON.parse(ahead)) };
    const entry =
      row === undefined
        ? ({ id, version, deleted: true } as const)
        : { id, version, ...fieldsOf(row, updated), sourceId: unmarked(source), ...booked };
    entries.push(entry);
    if (!isTombstone(entry)) facts.push(...factsOfProspect(entry, more, more.appointment?.id));
    const isDeleted = isTombstone(entry);
    const after = isTombstone(entry) ? null : entry.assignedToUserId;
    const assignees = { before: before || null, after };
    changes.push({ kind: "prospect", id, version, ...assignees, isDeleted, isRestored: more.restored === 1 });
    if (more.appointment !== undefined) {
      changes.push({ kind: "appointment", ...more.appointment, prospectId: id, ...assignees });
    }
  } else {
    throw new Error(`${sk} is not the key of a delta entry`);
  }
  return { pk, sk };
}

function fieldsOf(row: string, later = 0) {
  const fields = DeltaFields.parse(JSON.parse(row));
  const [createdAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits] = fields;
  const updatedAt = createdAt + later;
  return { createdAt, updatedAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits };
}

export interface Filled {
  readonly delta: Delta;
  /** Number of omitted entries without their long text. A flush may be deleting it, or the write of the text may not be visible yet. */
  readonly missing: number;
}

/** The long text of an entry. It is in another partition, with the entry's sort key. Only searches read it. */
interface LongText {
  readonly text: string;
  /** The digits of a prospect's phone numbers. Undefined for a note. */
  readonly phoneDigits?: string;
  readonly sourceId?: string | null;
}

export type LongTexts = ReadonlyMap<string, LongText>;

const Stored = z.object({
  sk: z.string(),
  text: z.string(),
  phoneDigits: z.optional(z.string()),
  source: z.optional(z.string()),
});

/** Reads all long texts with eventual consistency. Later, `withTexts` reads missing texts by their keys. */
export async function readLongTexts(table: Reads, companyId: number): Promise<LongTexts> {
  const texts = new Map<string, LongText>();
  for await (const item of table.query({ ...keys.deltaTexts(companyId), consistency: "eventual" }))
    keepText(item, texts);
  return texts;
}

function keepText(item: Item, into: Map<string, LongText>): void {
  const { sk, text, phoneDigits, source = "" } = Stored.parse(item);
  const ofProspect = phoneDigits !== undefined && { phoneDigits, sourceId: unmarked(source) };
  into.set(sk, { text, ...ofProspect });
}

/**
 * Adds the long texts to the entries. The result omits an entry whose text is not found. If a part already contains the entry's version of
 * the record, a flush has deleted the text, and readers do not need the entry. Otherwise, the entry is counted in `missing`.
 */
export async function withTexts(
  table: Reads,
  companyId: number,
  { prospects, notes }: Delta,
  parts: Pick<FlushedVersions, "prospectVersions" | "noteVersions">,
  { withLongText, texts: known = new Map() }: Pick<Unflushed, "withLongText"> & { texts?: LongTexts | undefined },
): Promise<Filled> {
  if (withLongText.size === 0) return { delta: { prospects, notes }, missing: 0 };
  const texts = new Map(known);
  const wanted = [...[...prospects.values()].map(skOfProspect), ...[...notes.values()].map(skOfNote)];
  const left = wanted.filter((sk) => withLongText.has(sk) && !texts.has(sk));
  for (const item of await table.batchGet(left.map((sk) => keys.deltaText(companyId, sk)))) keepText(item, texts);
  let missing = 0;
  function filled<T extends { readonly version: number }>(entry: T, sk: string, flushed: number): T | undefined {
    const found = texts.get(sk);
    if (!withLongText.has(sk) || found !== undefined) return { ...entry, ...found };
    if (flushed < entry.version) missing++;
    return undefined;
  }
  const delta = {
    prospects: mapped(prospects, (entry, id) =>
      isTombstone(entry) ? entry : filled(entry, skOfProspect(entry), parts.prospectVersions.versionOf(id)),
    ),
    notes: mapped(notes, (entry, id) => filled(entry, skOfNote(entry), parts.noteVersions.versionOf(id))),
  };
  return { delta, missing };
}

// The company id 0 is a placeholder, because the sort key does not depend on the company.
const skOfProspect = ({ id, version }: IndexEntry): string => keys.prospectDelta(0, id, version).sk;
const skOfNote = ({ prospectId, noteId, version }: NoteEntry): string =>
  keys.noteDelta(0, prospectId, noteId, version).sk;

function mapped<T>(from: ReadonlyMap<number, T>, work: (entry: T, id: number) => T | undefined): Map<number, T> {
  const into = new Map<number, T>();
  for (const [id, entry] of from) {
    const result = work(entry, id);
    if (result !== undefined) into.set(id, result);
  }
  return into;
}
