/** Reads the chunks of a company's change log. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { Change, type Chunk } from "#shared/company-index/change-log.ts";
import { readUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import { decompress } from "#shared/company-index/encoding.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";

/** The stored JSON omits fields that are false or unknown. */
const Changes = z.array(Change);

const ChunkItem = z.object({
  sk: z.string(),
  previous: z.int(),
  parts: z.int(),
  at: z.int(),
  range: z.optional(z.tuple([z.int(), z.int()])),
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

/** The log lacks a chunk that the reader needs, so the reader must read all data again. */
export class ChunkLost extends Error {
  override name = "ChunkLost";
}

/** Maximum attempts to read all chunks. A Query is not isolated from transactions: a reader may see the new head before its chunk. */
const TRIES = 8;

/** A request that has read this number of rows, or of changes, reads no further chunk. */
const ROWS_PER_READ = 1_000;
const CHANGES_PER_READ = 100_000;
/** The first read of chunks ends after this number of bytes. A row has at most 400 KB, so one page of a Query (1 MB) is enough. */
const FIRST_BYTES = 512 * 1_024;

export interface Log {
  readonly unflushed: Unflushed;
  /** The chunks after the reader's position, the oldest first. */
  readonly chunks: AsyncIterable<Chunk>;
  /** Returns the unflushed changes, and those of the chunks that the first read has returned. */
  readonly changesAtHand: () => readonly Change[];
}

/** Reads the changes after the head's version `after`. `rowsAtOnce` is the number of chunk rows that the caller will probably use. */
export async function readLog(table: Reads, companyId: number, after: number, rowsAtOnce: number): Promise<Log> {
  const unflushed = await readUnflushed(table, companyId);
  const { head } = unflushed;
  const first = head.lastChunk > after ? await firstRows(table, companyId, after, rowsAtOnce) : [];
  return {
    unflushed,
    chunks: chunksAfter(table, companyId, { after, head, first, rowsAtOnce }),
    changesAtHand: () => [...first.flatMap((row) => chunkOf(row).changes), ...unflushed.changes],
  };
}

async function firstRows(table: Reads, companyId: number, after: number, limit: number): Promise<Item[]> {
  const range = keys.chunks(companyId, after, Number.MAX_SAFE_INTEGER);
  const items: Item[] = [];
  let bytes = 0;
  for await (const item of table.query({ ...range, limit, consistency: "eventual" })) {
    items.push(item);
    bytes += item.bytes instanceof Uint8Array ? item.bytes.length : 0;
    if (bytes >= FIRST_BYTES) break;
  }
  return items;
}

interface LogRange {
  readonly after: number;
  readonly head: Head;
  /** The first rows after the version `after`, which have already been read. */
  readonly first: readonly Item[];
  readonly rowsAtOnce: number;
}

/**
 * Yields the chunks after the version `after`, up to the version of `head` or until `ROWS_PER_READ` or `CHANGES_PER_READ` is reached. Each
 * chunk contains the version of the chunk before it, so this function notices a gap and reads again. The first reads may therefore be
 * eventually consistent. Throws ChunkLost if a chunk is missing in all attempts.
 */
async function* chunksAfter(
  table: Reads,
  companyId: number,
  { after, head, first, rowsAtOnce: pageItems }: LogRange,
): AsyncGenerator<Chunk, void, undefined> {
  let [seen, rows, changes] = [after, 0, 0];
  for (let attempt = 0; attempt <= TRIES; attempt++) {
    if (seen >= head.lastChunk) return;
    if (attempt > 1) await sleep(10 * attempt);
    const range = { ...keys.chunks(companyId, seen, head.version), pageItems };
    const consistency = attempt === 1 ? "eventual" : "strong";
    let waiting: Chunk[] = [];
    for await (const item of attempt === 0 ? first : table.query({ ...range, consistency })) {
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
