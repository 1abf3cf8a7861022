/** Reads the rows of notes, appointments and territories for the feed of changes. */
import { setTimeout as sleep } from "node:timers/promises";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import { blockOf, type Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";

/** The row must be read in this version or a later one. */
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
 * Returns a function that finds a row by its key, or undefined. Rows that are missing or too old after an eventually consistent read are
 * read again with strong consistency, `TRIES` times at most.
 */
export async function rowsAt<Row extends Versioned>(
  table: Reads,
  wanted: readonly WantedRow[],
  parse: (item: Item) => Row,
): Promise<(row: Key) => Row | undefined> {
  const found = new Map<string, Row>();
  const keep = (item: Item): void => {
    const { pk, sk } = item;
    if (typeof pk === "string" && typeof sk === "string") found.set(nameOf({ pk, sk }), parse(item));
  };
  const single = wanted.map(({ pk, sk }) => ({ pk, sk }));
  for (const item of await table.batchGet(single, { consistency: "eventual" })) keep(item);
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

export interface Some<Row> {
  readonly rows: readonly Row[];
  readonly hasMore: boolean;
}

/** The result comes directly after `sk`, and before every other key that begins with `sk`. */
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

/** The notes according to the search index. */
export type KnownNotes = readonly { readonly id: number; readonly version: number }[];

/** A prospect with more notes than this gets a separate Query. */
const MANY_NOTES = 200;

/** Leaves out a prospect if one of its notes is missing or older than in the search index. The caller must then use `notesAfter`. */
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

/** Returns true if one Query over these ids probably costs less than a Query for each prospect. */
const isDense = (count: number, first: number, last: number): boolean =>
  count >= WORTH_A_QUERY && last - first < 3 * count;

/** Reads the notes after the given one, or from the first note on if the list is empty. */
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

/** If `id` is undefined, reads from the first appointment on. */
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
