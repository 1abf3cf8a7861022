/** Unflushed entries as the table holds them: one slim, immutable row per write, in one partition with the head. */
import * as z from "zod/mini";
import { HEAD_TYPE, type Head, readHead } from "#shared/company-index/manifest.ts";
import { type IndexEntry, isTombstone, type NoteEntry } from "#shared/company-index/record.ts";
import type { Delta, FlushedVersions } from "#shared/company-index/versions.ts";
import type { Item, Write } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** Everything a read of the index asks the table for when its segments are in memory. */
export interface Unflushed {
  readonly head: Head;
  readonly entries: readonly IndexEntry[];
  readonly notes: readonly NoteEntry[];
  /** Keys of all these rows. */
  readonly keys: readonly Key[];
  /** Sort keys of the entries whose texts stand beside them, and are empty here. */
  readonly aside: ReadonlySet<string>;
  /** Of all entries together (`weightOf`). */
  readonly weight: number;
}

/** Bytes of the text that an entry holds itself: each list reads it. A longer one stands beside the entry. */
const TEXT_BYTES = 256;
/** An entry of so many bytes, its text included, counts as one for the next flush; a longer one as several. */
const ENTRY_BYTES = 1_024;

/** Of an entry's item: the stream's filter knows it by this. */
export const DELTA_TYPE = "delta";

/** Created, status, assignee, tags, city, latitude, longitude, text, digits of the phones: short, since each read pays for it. */
const Fields = z.tuple([
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

/** To be written in the transaction of the prospect's own row. */
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

/** To be written in the transaction of the note's own row. */
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

/** Texts first: an entry without its text has been flushed, and is known by that; a text without its entry nobody would find. */
export async function removeUnflushed(table: Table, companyId: number, { keys: going, aside }: Going): Promise<void> {
  const texts = going.filter(({ sk }) => aside.has(sk));
  await table.batchRemove(texts.map(({ sk }) => keys.deltaText(companyId, sk)));
  await table.batchRemove(going);
}

type Going = Pick<Unflushed, "keys" | "aside">;

/** How much nearer an entry's row brings the next flush. */
export function weightOf(row: Item): number {
  const { row: fields = "", note = "", aside = 0 } = Weighed.parse(row);
  return 1 + Math.floor((fields.length + note.length + aside) / ENTRY_BYTES);
}

/** One Query, strongly consistent. */
export async function readUnflushed(table: Table, companyId: number): Promise<Unflushed> {
  const entries: IndexEntry[] = [];
  const notes: NoteEntry[] = [];
  const found: Key[] = [];
  const aside = new Set<string>();
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
    if (item.aside !== undefined) aside.add(key.sk);
  }
  return { head, entries, notes, keys: found, aside, weight };
}

const Weighed = z.object({
  row: z.optional(z.string()),
  note: z.optional(z.string()),
  aside: z.optional(z.number()),
});

const DeltaItem = z.object({
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
    throw new Error(`no unflushed entry has the key ${sk}`);
  }
  return { pk, sk };
}

function fieldsOf(row: string) {
  const fields = Fields.parse(JSON.parse(row));
  const [createdAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits] = fields;
  return { createdAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits };
}

export interface Filled {
  readonly delta: Delta;
  /** Entries without their texts: they are being flushed, or were written at this very instant. */
  readonly missing: number;
}

interface LongText {
  readonly text: string;
  readonly phoneDigits: string;
}

/** By the sort keys of their entries. */
export type LongTexts = ReadonlyMap<string, LongText>;

const Stored = z.object({ sk: z.string(), text: z.string(), phoneDigits: z._default(z.string(), "") });

/** All that there are, at half the price of a strong read: what it does not find yet is asked for by its key. */
export async function readLongTexts(table: Table, companyId: number): Promise<LongTexts> {
  const texts = new Map<string, LongText>();
  for await (const item of table.query({ ...keys.deltaTexts(companyId), consistency: "eventual" }))
    keepText(item, texts);
  return texts;
}

function keepText(item: Item, into: Map<string, LongText>): void {
  const { sk, text, phoneDigits } = Stored.parse(item);
  into.set(sk, { text, phoneDigits });
}

/**
 * The same entries with their texts. `aside`: sort keys of those that have theirs beside them. A flush takes the text away before its
 * entry: an entry without one is left out where the runs have that very version, and counted as missing where they do not.
 */
export async function withTexts(
  table: Table,
  companyId: number,
  { prospects, notes }: Delta,
  runs: Pick<FlushedVersions, "prospectVersions" | "noteVersions">,
  aside: ReadonlySet<string>,
  known: LongTexts = new Map(),
): Promise<Filled> {
  if (aside.size === 0) return { delta: { prospects, notes }, missing: 0 };
  const texts = new Map(known);
  const wanted = [...[...prospects.values()].map(skOfProspect), ...[...notes.values()].map(skOfNote)];
  const left = wanted.filter((sk) => aside.has(sk) && !texts.has(sk));
  for (const item of await table.batchGet(left.map((sk) => keys.deltaText(companyId, sk)))) keepText(item, texts);
  let missing = 0;
  /** Undefined: the runs have it. */
  function filled<T extends { readonly version: number }>(entry: T, sk: string, flushed: number): T | undefined {
    const found = texts.get(sk);
    if (!aside.has(sk) || found !== undefined) return { ...entry, ...found };
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

// Sort keys are the same in every company.
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
