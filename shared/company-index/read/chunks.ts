/** Reads the chunks of a company's change log. A chunk contains the changes that one flush has merged into the search index. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { type Change, type Chunk, CopyRows, SharedChange } from "#shared/company-index/change-log.ts";
import { readUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import { TWO_UNITS_BYTES } from "#shared/company-index/delta-size.ts";
import { decompress } from "#shared/company-index/encoding.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import * as changeLogKeys from "#shared/db/change-log-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Reads } from "#shared/db/reads.ts";

const Assignee = z.nullable(z.int());
const common = { id: z.int(), version: z.int(), isDeleted: z._default(z.boolean(), false) };
const assignees = { before: Assignee, after: Assignee };
const copied = { lacksCopy: z.optional(z.boolean()) };
const holders = { heldBy: z.optional(z.array(z.int())) };

/** The changes of a chunk. The stored JSON omits fields that are false or unknown. */
const Changes = z.array(
  z.discriminatedUnion("kind", [
    z.object({
      kind: z.literal("prospect"),
      ...common,
      ...assignees,
      isRestored: z._default(z.boolean(), false),
      ...copied,
      movesAppointments: z.optional(z.boolean()),
      hasNoNotes: z.optional(z.boolean()),
      deletedAt: z.optional(z.int()),
    }),
    z.object({ kind: z.literal("appointment"), ...common, ...assignees, ...holders, ...copied, prospectId: z.int() }),
    z.object({
      kind: z.literal("note"),
      ...common,
      ...holders,
      ...copied,
      prospectId: z.int(),
      createdAt: z.optional(z.int()),
      assignee: z.optional(z.int()),
    }),
    SharedChange,
  ]),
);

const ChunkItem = z.object({
  sk: z.string(),
  previous: z.int(),
  parts: z.int(),
  at: z.int(),
  range: z.optional(z.tuple([z.int(), z.int()])),
  copies: z.optional(CopyRows),
  bytes: z.instanceof(Uint8Array),
});

const changesIn = (bytes: Uint8Array): Change[] =>
  decompress("a chunk of the change log", bytes, (json) => Changes.parse(JSON.parse(Buffer.from(json).toString())));

const chunkKey = /^C#(\d+)#(\d+)$/;

function chunkOf(item: Item): Chunk {
  const { sk, bytes, range, ...rest } = ChunkItem.parse(item);
  const [, version, part] = chunkKey.exec(sk) ?? [];
  if (version === undefined) throw new Error(`${sk} is not the key of a chunk`);
  return {
    ...rest,
    version: Number(version),
    part: Number(part),
    changes: changesIn(bytes),
    ...(range !== undefined && { range: { from: range[0], to: range[1] } }),
  };
}

/** The change log lacks a chunk that the reader needs. The reader must read all data again. */
export class ChunkLost extends Error {
  override name = "ChunkLost";
}

/**
 * Maximum number of attempts to read a chunk of the change log to which the head row refers. A Query is not isolated from transactions, so
 * it may return the new head row while the chunk is not visible yet.
 */
const TRIES = 8;

/**
 * Maximum numbers of rows and of changes of the change log for one request. Once one of them is reached, the request reads no further
 * chunk, and the client gets the rest with further requests. A row usually contains 64 changes, and at most 8 000.
 */
const ROWS_PER_READ = 1_000;
const CHANGES_PER_READ = 100_000;
/**
 * Maximum bytes of the chunks (of the change log) that are read at the same time as the head row. They fit into one page of a Query (1 MB),
 * so one request to DynamoDB reads them.
 */
const EARLY_BYTES = 512 * 1_024;

/**
 * If the unflushed entries (recent changes) and the head row together have a number of bytes in this range, DynamoDB charges two read units
 * for them. A request that finds no change must not cost more. A Query for chunks costs half a unit even if it finds nothing. For a company
 * in this range, a request that expects no new chunk therefore does not read chunks in advance (see `isTooDear`).
 */
const TWO_UNITS = [4_096, TWO_UNITS_BYTES] as const;

/**
 * For each company id, the version of the newest chunk that this function instance has seen. Contains only companies whose last read of
 * unflushed entries and head row cost two read units (see `TWO_UNITS`).
 */
const newestSeen = new WeakMap<Reads, Map<number, number>>();
const REMEMBERED_COMPANIES = 1_000;

/**
 * Returns true if a Query for chunks of the change log after `version` would probably find nothing and would make the request cost more
 * than two read units.
 */
function isTooDear(table: Reads, companyId: number, version: number): boolean {
  return (newestSeen.get(table)?.get(companyId) ?? Number.POSITIVE_INFINITY) <= version;
}

function remember(table: Reads, companyId: number, { head, bytes }: Unflushed): void {
  const companies = newestSeen.get(table) ?? new Map<number, number>();
  newestSeen.set(table, companies);
  companies.delete(companyId);
  if (bytes <= TWO_UNITS[0] || bytes > TWO_UNITS[1]) return;
  companies.set(companyId, head.lastChunk);
  for (const oldest of companies.keys()) {
    if (companies.size <= REMEMBERED_COMPANIES) break;
    companies.delete(oldest);
  }
}

/** How many rows the caller will probably use. */
export interface RowsToRead {
  /** Number of rows of chunks. */
  readonly rowsAtOnce: number;
  /** Number of rows of copies. */
  readonly copyRowsAtOnce: number;
}

export interface Log {
  readonly unflushed: Unflushed;
  /** The chunks of the change log after the reader's position, the oldest first. */
  readonly chunks: AsyncIterable<Chunk>;
  /**
   * Returns the changes after the reader's position that are already in memory: the unflushed changes, and the changes of chunks that were
   * read at the same time as the head row.
   */
  readonly changesAtHand: () => readonly Change[];
  /** Rows with copies of records (see copies/rows.ts) that were read together with the chunks. */
  readonly copiesAtHand: readonly Item[];
}

/**
 * Reads the changes of a company after the version `after` of the head row. To save a round trip, it usually reads the first chunks at the
 * same time as the head row. If it does not, it reads copies of prospects together with the chunks.
 */
export async function readLog(
  table: Reads,
  companyId: number,
  after: number,
  { rowsAtOnce, copyRowsAtOnce }: RowsToRead,
): Promise<Log> {
  const [unflushed, first] = await Promise.all([
    readUnflushed(table, companyId),
    isTooDear(table, companyId, after) ? undefined : earlyRows(table, companyId, after, rowsAtOnce),
  ]);
  remember(table, companyId, unflushed);
  const { head } = unflushed;
  const isLate = first === undefined && head.lastChunk > after;
  const [early, copiesAtHand] = await Promise.all([
    isLate ? earlyRows(table, companyId, after, rowsAtOnce) : (first ?? []),
    isLate ? copiesAfter(table, companyId, after, head, copyRowsAtOnce) : [],
  ]);
  return {
    unflushed,
    chunks: chunksAfter(table, companyId, after, head, early, rowsAtOnce),
    changesAtHand: () => [...early.flatMap((row) => chunkOf(row).changes), ...unflushed.changes],
    copiesAtHand,
  };
}

/**
 * Reads copies of prospects at the same time as the chunks to which they belong. The chunks were not read together with the head row, so
 * the copies would otherwise need one more round trip. Reads nothing if the head row has more than `most` new versions, because most of the
 * copies might then not be needed.
 */
async function copiesAfter(
  table: Reads,
  companyId: number,
  after: number,
  { version }: Head,
  most: number,
): Promise<Item[]> {
  if (version - after > most) return [];
  const range = changeLogKeys.copies(companyId, after, version);
  const items: Item[] = [];
  for await (const item of table.query({ ...range, limit: most, consistency: "eventual" })) items.push(item);
  return items;
}

async function earlyRows(table: Reads, companyId: number, after: number, limit: number): Promise<Item[]> {
  const range = changeLogKeys.chunks(companyId, after, Number.MAX_SAFE_INTEGER);
  const items: Item[] = [];
  let bytes = 0;
  for await (const item of table.query({ ...range, limit, consistency: "eventual" })) {
    items.push(item);
    bytes += item.bytes instanceof Uint8Array ? item.bytes.length : 0;
    if (bytes >= EARLY_BYTES) break;
  }
  return items;
}

/**
 * Yields the chunks after the version `after` of the head row. Ends at the version of `head`, or when `ROWS_PER_READ` or `CHANGES_PER_READ`
 * is reached. Each chunk contains the version of the chunk before it. If a chunk is not visible yet, the reader therefore notices the gap
 * and reads again, so the first reads may be eventually consistent, which is cheaper. Throws ChunkLost if a chunk is still missing after
 * all attempts.
 */
async function* chunksAfter(
  table: Reads,
  companyId: number,
  after: number,
  head: Head,
  early: readonly Item[],
  pageItems: number,
): AsyncGenerator<Chunk, void, undefined> {
  let [seen, rows, changes] = [after, 0, 0];
  for (let attempt = 0; attempt <= TRIES; attempt++) {
    if (seen >= head.lastChunk) return;
    if (attempt > 1) await sleep(10 * attempt);
    const range = { ...changeLogKeys.chunks(companyId, seen, head.version), pageItems };
    const consistency = attempt === 1 ? "eventual" : "strong";
    let waiting: Chunk[] = [];
    for await (const item of attempt === 0 ? early : table.query({ ...range, consistency })) {
      const chunk = chunkOf(item);
      if (chunk.previous > seen || chunk.version > head.version) break;
      waiting.push(chunk);
      rows++;
      changes += chunk.changes.length;
      if (waiting.length < chunk.parts) continue;
      yield* waiting;
      waiting = [];
      seen = chunk.version;
      if (rows >= ROWS_PER_READ || changes >= CHANGES_PER_READ) return;
    }
  }
  throw new ChunkLost(`the change log of company ${companyId} lacks a chunk after ${seen}`);
}
