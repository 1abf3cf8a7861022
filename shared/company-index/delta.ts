/**
 * The delta of a company's search index: recent changes that are not in the stored index yet. Each write of a prospect or note adds an
 * entry, which never changes. A flush later moves the entries into the stored index. The stored index consists of sorted runs, and each
 * run consists of segments.
 */

import * as z from "zod/mini";
import { HEAD_TYPE, type Head, readHead } from "#shared/company-index/manifest.ts";
import { type IndexEntry, isTombstone, type NoteEntry } from "#shared/company-index/record.ts";
import type { Delta, FlushedVersions } from "#shared/company-index/versions.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";

/** All unflushed entries, and the head row of the index, which lists its runs. One Query reads both. */
export interface Unflushed {
  readonly head: Head;
  readonly entries: readonly IndexEntry[];
  readonly notes: readonly NoteEntry[];
  readonly keys: readonly Key[];
  /** Sort keys of the entries whose text is in a separate row. In such an entry, the text is empty here. */
  readonly withLongText: ReadonlySet<string>;
  /** Sum of the weights of all entries (see `weightOf`). A flush starts when the sum is large enough. */
  readonly weight: number;
}

/**
 * Maximum bytes of a text inside an entry. Every list reads all entries. A longer text therefore has a separate row, which only searches
 * read.
 */
const TEXT_BYTES = 256;
/**
 * The weight of an entry grows by 1 for every 1 024 bytes, including its text. The total weight of the entries decides when a flush
 * starts.
 */
const ENTRY_BYTES = 1_024;

/** The `type` attribute of an entry. The event source of the flush function selects stream records by this value. */
export const DELTA_TYPE = "delta";

/**
 * The fields of a prospect's entry: creation time, status, assignee, tags, city, latitude, longitude, text and phone digits. The tuple
 * has no field names, because DynamoDB charges reads by size.
 */
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

/**
 * Returns the entry of a changed prospect. Write it in the transaction that writes the prospect's row, so that the index misses no
 * change.
 */
export function prospectDelta(companyId: number, entry: IndexEntry): Write[] {
  const key = keys.prospectDelta(companyId, entry.id, entry.version);
  if (isTombstone(entry)) return [{ put: { ...key, type: DELTA_TYPE } }];
  const { createdAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits } = entry;
  const filters = [createdAt, statusId, assignedToUserId, tagIds, city, lat, lng];
  const bytes = Buffer.byteLength(text) + phoneDigits.length;
  if (bytes <= TEXT_BYTES) {
    return [{ put: { ...key, type: DELTA_TYPE, row: JSON.stringify([...filters, text, phoneDigits]) } }];
  }
  return [
    { put: { ...key, type: DELTA_TYPE, row: JSON.stringify([...filters, "", ""]), aside: bytes } },
    { put: { ...keys.deltaText(companyId, key.sk), type: "deltaText", text, phoneDigits } },
  ];
}

/** Returns the entry of a changed note. Write it in the transaction that writes the note's row, so that the index misses no change. */
export function noteDelta(companyId: number, { prospectId, noteId, version, text }: NoteEntry): Write[] {
  const key = keys.noteDelta(companyId, prospectId, noteId, version);
  if (text === null) return [{ put: { ...key, type: DELTA_TYPE } }];
  const bytes = Buffer.byteLength(text);
  if (bytes <= TEXT_BYTES) return [{ put: { ...key, type: DELTA_TYPE, note: text } }];
  return [
    { put: { ...key, type: DELTA_TYPE, note: "", aside: bytes } },
    { put: { ...keys.deltaText(companyId, key.sk), type: "deltaText", text } },
  ];
}

/**
 * Deletes flushed entries. The long text of an entry is deleted before the entry. If the process is killed in between, the entry remains
 * without its text, and readers conclude that it is flushed. In the other order, a text could remain without an entry, and no later flush
 * would find it.
 */
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

/** Returns the weight of a stored entry, which is at least 1. The total weight of the unflushed entries decides when a flush starts. */
export function weightOf(row: Item): number {
  const { row: fields = "", note = "", aside = 0 } = Weighed.parse(row);
  return 1 + Math.floor((fields.length + note.length + aside) / ENTRY_BYTES);
}

/** Reads the head row (the list of runs) and all unflushed entries with one strongly consistent Query. */
export async function readUnflushed(table: Reads, companyId: number): Promise<Unflushed> {
  const entries: IndexEntry[] = [];
  const notes: NoteEntry[] = [];
  const found: Key[] = [];
  const withLongText = new Set<string>();
  let head = readHead(undefined);
  let weight = 0;
  for await (const item of table.query(keys.index(companyId))) {
    if (item.type === HEAD_TYPE) {
      head = readHead(item);
      continue;
    }
    const key = keepEntry(item, entries, notes);
    found.push(key);
    weight += weightOf(item);
    if (item.aside !== undefined) withLongText.add(key.sk);
  }
  return { head, entries, notes, keys: found, withLongText, weight };
}

/**
 * The attributes that determine the weight of an entry. `aside` is the number of bytes of a text in a separate row. It is undefined if
 * the entry contains its text.
 */
const Weighed = z.object({
  row: z.optional(z.string()),
  note: z.optional(z.string()),
  aside: z.optional(z.number()),
});

export const DeltaItem = z.object({
  pk: z.string(),
  sk: z.string(),
  type: z.literal(DELTA_TYPE),
  row: z.optional(z.string()),
  note: z.optional(z.string()),
});
const prospectKey = /^D#(\d+)#(\d+)$/;
const noteKey = /^D#(\d+)#N(\d+)#(\d+)$/;

function keepEntry(item: Item, entries: IndexEntry[], notes: NoteEntry[]): Key {
  const { pk, sk, row, note } = DeltaItem.parse(item);
  const ofNote = noteKey.exec(sk);
  const ofProspect = prospectKey.exec(sk);
  if (ofNote !== null) {
    const [prospectId = 0, noteId = 0, version = 0] = ofNote.slice(1).map(Number);
    notes.push({ prospectId, noteId, version, text: note ?? null });
  } else if (ofProspect !== null) {
    const [id = 0, version = 0] = ofProspect.slice(1).map(Number);
    entries.push(row === undefined ? { id, version, deleted: true } : { id, version, ...fieldsOf(row) });
  } else {
    throw new Error(`${sk} is not the key of a delta entry`);
  }
  return { pk, sk };
}

function fieldsOf(row: string) {
  const fields = DeltaFields.parse(JSON.parse(row));
  const [createdAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits] = fields;
  return { createdAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits };
}

export interface Filled {
  readonly delta: Delta;
  /** Number of entries whose long text was not found. Either a flush is deleting the text, or the write of the text is not visible yet. */
  readonly missing: number;
}

/**
 * The long text of an entry. Its row has the same sort key as the entry, but is in another partition. Lists therefore do not pay for
 * texts that only searches read.
 */
interface LongText {
  readonly text: string;
  /** The digits of a prospect's phone numbers. A note has none. */
  readonly phoneDigits?: string;
}

export type LongTexts = ReadonlyMap<string, LongText>;

const Stored = z.object({ sk: z.string(), text: z.string(), phoneDigits: z.optional(z.string()) });

/** Reads all long texts with eventually consistent reads, which cost half as much. `withTexts` reads a missing text again by its key. */
export async function readLongTexts(table: Reads, companyId: number): Promise<LongTexts> {
  const texts = new Map<string, LongText>();
  for await (const item of table.query({ ...keys.deltaTexts(companyId), consistency: "eventual" }))
    keepText(item, texts);
  return texts;
}

function keepText(item: Item, into: Map<string, LongText>): void {
  const { sk, text, phoneDigits } = Stored.parse(item);
  into.set(sk, { text, ...(phoneDigits !== undefined && { phoneDigits }) });
}

/**
 * Adds the long texts to the entries whose sort keys are in `withLongText`. A flush deletes the text of an entry before the entry. An
 * entry without its text is therefore dropped if a run contains its version, and is otherwise counted as missing.
 */
export async function withTexts(
  table: Reads,
  companyId: number,
  { prospects, notes }: Delta,
  runs: Pick<FlushedVersions, "prospectVersions" | "noteVersions">,
  withLongText: ReadonlySet<string>,
  known: LongTexts = new Map(),
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
      isTombstone(entry) ? entry : filled(entry, skOfProspect(entry), runs.prospectVersions.versionOf(id)),
    ),
    notes: mapped(notes, (entry, id) => filled(entry, skOfNote(entry), runs.noteVersions.versionOf(id))),
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
