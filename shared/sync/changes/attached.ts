/** Reads the rows of notes, appointments and territories for the feed of changes. */
import { setTimeout as sleep } from "node:timers/promises";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import { blockOf, type Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";

/** The key of a row that must be read in the version `version` or a later one. */
export interface WantedRow extends Key {
  readonly version: number;
}

interface Versioned {
  readonly version: number;
}

/** If at least this many rows of one partition are wanted, one Query is cheaper than reading each row by its key. */
const WORTH_A_QUERY = 4;
const TRIES = 5;

const nameOf = ({ pk, sk }: Key): string => `${pk} ${sk}`;

/**
 * Reads the wanted rows, each in its wanted version or a later one. Returns a function that finds a row by its key. The returned function
 * returns undefined for a row that does not exist. The rows of one partition were often written one after the other, and then their keys
 * are close together. One Query therefore reads from the lowest to the highest wanted key of a partition, but at most twice as many rows as
 * are wanted. Rows of partitions with few wanted rows are read by their keys. If `mayQuery` is false, all rows are read by their keys. Rows
 * that are then still missing or too old are read again with strong consistency, `TRIES` times at most.
 */
export async function rowsAt<Row extends Versioned>(
  table: Reads,
  wanted: readonly WantedRow[],
  parse: (item: Item) => Row,
  mayQuery = true,
): Promise<(row: Key) => Row | undefined> {
  const found = new Map<string, Row>();
  const keep = (item: Item): void => {
    const { pk, sk } = item;
    if (typeof pk === "string" && typeof sk === "string") found.set(nameOf({ pk, sk }), parse(item));
  };
  const names = new Set(wanted.map(nameOf));
  const single: Key[] = [];
  const reads: Promise<void>[] = [];
  for (const [pk, own] of Map.groupBy(wanted, ({ pk }) => pk)) {
    const sorted = own.map(({ sk }) => sk).sort();
    const [from = "", upTo = ""] = [sorted[0], sorted.at(-1)];
    if (!mayQuery || own.length < WORTH_A_QUERY) {
      single.push(...sorted.map((sk) => ({ pk, sk })));
      continue;
    }
    const work = async (): Promise<void> => {
      const query = { pk, from, upTo, limit: 2 * own.length, consistency: "eventual" } as const;
      for await (const item of table.query(query)) {
        if (names.has(nameOf({ pk, sk: String(item.sk) }))) keep(item);
      }
    };
    reads.push(work());
  }
  const batch = single.length === 0 ? [] : table.batchGet(single, { consistency: "eventual" });
  const [items] = await Promise.all([batch, ...reads]);
  for (const item of items) keep(item);
  for (let tries = 1; tries <= TRIES; tries++) {
    const behind = wanted.filter((row) => (found.get(nameOf(row))?.version ?? 0) < row.version);
    if (behind.length === 0) break;
    if (tries > 1) await sleep(10 * tries);
    for (const item of await table.batchGet(behind.map(({ pk, sk }) => ({ pk, sk })))) keep(item);
    // A row that is still missing after two strong reads was deleted meanwhile.
    if (tries > 1 && behind.every((row) => !found.has(nameOf(row)))) break;
  }
  return (row) => found.get(nameOf(row));
}

/** Some rows of a list. `hasMore` is true if the list has more rows after them. */
export interface Some<Row> {
  readonly rows: readonly Row[];
  readonly hasMore: boolean;
}

/** Returns a sort key that comes directly after `sk`, and before every other key that begins with `sk`. */
const after = (sk: string): string => `${sk}!`;

async function someRows<Row>(
  table: Reads,
  { pk, from, upTo }: { readonly pk: string; readonly from: string; readonly upTo: string },
  limit: number,
  parse: (item: Item) => Row,
): Promise<Some<Row>> {
  const rows: Row[] = [];
  for await (const item of table.query({ pk, from, upTo, limit: limit + 1 })) rows.push(parse(item));
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
}

/** The ids and versions of a prospect's notes according to the search index. */
export type KnownNotes = readonly { readonly id: number; readonly version: number }[];

/** A prospect with more notes than this gets a separate Query. */
const MANY_NOTES = 200;

/**
 * Reads the notes of several prospects with eventually consistent reads. If a note is missing, or is older than the version in the search
 * index, the result leaves out the note's prospect. The caller must then read this prospect's notes with `notesAfter`. If the ids of the
 * prospects are close together, one Query reads the notes of several prospects.
 */
export async function notesOf(
  table: Reads,
  companyId: number,
  prospects: readonly (readonly [id: number, notes: KnownNotes])[],
): Promise<Map<number, StoredNote[]>> {
  const found = new Map(prospects.map(([id]): [number, StoredNote[]] => [id, []]));
  const readSpan = async (own: typeof prospects): Promise<void> => {
    const [first = 0, last = 0] = [own[0]?.[0], own.at(-1)?.[0]];
    const range = attachedKeys.notes(companyId, first, last);
    const limit = 2 * own.reduce((sum, [, notes]) => sum + notes.length, 0);
    for await (const item of table.query({ ...range, limit, consistency: "eventual" })) {
      const note = StoredNote.parse(item);
      found.get(note.prospectId)?.push(note);
    }
  };
  const reads: Promise<void>[] = [];
  for (const own of Map.groupBy(prospects, ([id]) => blockOf(id)).values()) {
    const few = own.filter(([, notes]) => notes.length <= MANY_NOTES);
    const [first = 0, last = 0] = [few[0]?.[0], few.at(-1)?.[0]];
    const mayQuery = isDense(few.length, first, last);
    const single = mayQuery ? own.filter((one) => !few.includes(one)) : own;
    if (mayQuery) reads.push(readSpan(few));
    for (const one of single) reads.push(readSpan([one]));
  }
  await Promise.all(reads);
  for (const [id, notes] of prospects) {
    const versions = new Map(found.get(id)?.map((note) => [note.id, note.version]));
    if (notes.some((note) => (versions.get(note.id) ?? 0) < note.version)) found.delete(id);
  }
  return found;
}

/** If one Query reads the first notes of several prospects, it reads at most this many rows for each prospect on average. */
const FIRST_NOTES = 4;

/**
 * Reads the first `limit` notes of each prospect. If the ids of the prospects are close together, one Query reads the notes of several
 * prospects, because a separate Query for a prospect costs at least one read unit, even if the prospect has no notes.
 */
export async function firstNotes(
  table: Reads,
  companyId: number,
  ids: readonly number[],
  limit: number,
): Promise<Map<number, Some<StoredNote>>> {
  const found = new Map<number, Some<StoredNote>>();
  const readSingle = async (id: number): Promise<void> => {
    found.set(id, await notesAfter(table, companyId, id, [], limit));
  };
  const readSpan = async (own: readonly number[], first: number, last: number): Promise<void> => {
    const most = FIRST_NOTES * own.length;
    const notes: StoredNote[] = [];
    for await (const item of table.query({ ...attachedKeys.notes(companyId, first, last), limit: most })) {
      notes.push(StoredNote.parse(item));
    }
    const completeUpTo = notes.length < most ? last : (notes.at(-1)?.prospectId ?? 0) - 1;
    const ofProspect = Map.groupBy(notes, ({ prospectId }) => prospectId);
    for (const id of own.filter((one) => one <= completeUpTo)) {
      const rows = ofProspect.get(id) ?? [];
      found.set(id, { rows: rows.slice(0, limit), hasMore: rows.length > limit });
    }
    await Promise.all(own.filter((id) => id > completeUpTo).map(readSingle));
  };
  const reads = [...Map.groupBy(ids, blockOf).values()].flatMap((own) => {
    const [first, last] = [Math.min(...own), Math.max(...own)];
    return isDense(own.length, first, last) ? readSpan(own, first, last) : own.map(readSingle);
  });
  await Promise.all(reads);
  return found;
}

/** Returns true if one Query over these ids probably costs less than a Query for each prospect. */
const isDense = (count: number, first: number, last: number): boolean =>
  count >= WORTH_A_QUERY && last - first < 3 * count;

/**
 * Reads the notes of a prospect that come after the note with this creation time and id. If the list is empty, it reads from the first note
 * on.
 */
export function notesAfter(
  table: Reads,
  companyId: number,
  prospectId: number,
  [createdAt, id]: readonly number[],
  limit: number,
): Promise<Some<StoredNote>> {
  const range = attachedKeys.notes(companyId, prospectId);
  const from = id === undefined ? range.from : after(noteKey(companyId, prospectId, createdAt ?? 0, id).sk);
  return someRows(table, { ...range, from }, limit, (item) => StoredNote.parse(item));
}

/**
 * Reads the appointments of a prospect that come after the appointment with this id. If `id` is undefined, reads from the first appointment
 * on.
 */
export function appointmentsAfter(
  table: Reads,
  companyId: number,
  prospectId: number,
  id: number | undefined,
  limit: number,
): Promise<Some<StoredAppointment>> {
  const { pk, begins } = attachedKeys.appointments(companyId, prospectId);
  const from = id === undefined ? begins : after(attachedKeys.appointment(companyId, prospectId, id).sk);
  return someRows(table, { pk, from, upTo: `${begins}~` }, limit, (item) => StoredAppointment.parse(item));
}

export const noteKey = (companyId: number, prospectId: number, createdAt: number, id: number): Key =>
  attachedKeys.note(companyId, prospectId, new Date(createdAt).toISOString(), id);
