/**
 * The files of a bulk job in the bucket: the ids of its records in pieces, because a million do not fit into memory, and the results of each
 * chunk.
 */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Objects } from "#shared/aws/s3.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { StoredResult } from "#shared/jobs/bulk/stored.ts";
import { bulkKeys } from "#shared/jobs/s3-keys.ts";

/** Records whose results are stored together. After a crash, at most this number is handled again. */
export const CHUNK = 512;
/** Chunks whose ids are stored together in one file, a piece. */
const CHUNKS_PER_PIECE = 32;
const PIECE = CHUNK * CHUNKS_PER_PIECE;

const PARALLEL = 8;

export const chunksOf = (records: number): number => Math.ceil(records / CHUNK);

/** Returns the number of ids. */
export async function storeMembers(objects: Objects, { companyId, id }: JobId, ids: Iterable<number>): Promise<number> {
  let total = 0;
  let piece = 0;
  let batch: { key: string; bytes: Uint8Array }[] = [];
  let own: number[] = [];
  const put = ({ key, bytes }: { key: string; bytes: Uint8Array }): Promise<void> =>
    objects.put(key, bytes, "application/octet-stream");
  const close = (): void => {
    batch.push({ key: bulkKeys.members(companyId, id, piece++), bytes: encoded(own) });
    total += own.length;
    own = [];
  };
  for (const member of ids) {
    own.push(member);
    if (own.length < PIECE) continue;
    close();
    if (batch.length < PARALLEL) continue;
    await mapConcurrently(batch, PARALLEL, put);
    batch = [];
  }
  if (own.length > 0) close();
  await mapConcurrently(batch, PARALLEL, put);
  return total;
}

/** Returns a reader of chunks, which keeps only the last piece in memory. Read the chunks in ascending order. */
export function memberReader(objects: Objects, { companyId, id }: JobId): (chunk: number) => Promise<number[]> {
  let read: { piece: number; ids: number[] } | undefined;
  return async (chunk) => {
    const piece = Math.floor(chunk / CHUNKS_PER_PIECE);
    if (read?.piece !== piece)
      read = { piece, ids: decoded(await objects.get(bulkKeys.members(companyId, id, piece))) };
    const from = (chunk % CHUNKS_PER_PIECE) * CHUNK;
    return read.ids.slice(from, from + CHUNK);
  };
}

export const consecutiveIds = (firstId: number, total: number, chunk: number): number[] =>
  Array.from({ length: Math.min(CHUNK, total - chunk * CHUNK) }, (_, i) => firstId + chunk * CHUNK + i);

/** Encodes differences, which are small because consecutive records usually have similar ids. */
function encoded(ids: readonly number[]): Uint8Array {
  const into = new ByteWriter();
  into.integer(ids.length);
  let last = 0;
  for (const id of ids) {
    into.signed(id - last);
    last = id;
  }
  return zstdCompressSync(into.finish());
}

function decoded(bytes: Uint8Array): number[] {
  const from = new ByteReader(zstdDecompressSync(bytes));
  const ids: number[] = [];
  let last = 0;
  for (let left = from.integer(); left > 0; left--) {
    last += from.signed();
    ids.push(last);
  }
  return ids;
}

/** Stores the results of a chunk. Storing them again replaces them. */
export const storeResults = (
  objects: Objects,
  { companyId, id }: JobId,
  chunk: number,
  results: readonly StoredResult[],
): Promise<void> => objects.put(bulkKeys.results(companyId, id, chunk), packed(results), "application/octet-stream");

export const readResults = async (objects: Objects, { companyId, id }: JobId, chunk: number): Promise<StoredResult[]> =>
  unpacked(z.array(StoredResult), await objects.get(bulkKeys.results(companyId, id, chunk)));
