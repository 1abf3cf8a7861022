/**
 * The files of a bulk job in the bucket: the ids of its records, and the results of each chunk. The ids are divided among several files,
 * called pieces, because a million ids do not fit into memory.
 */
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Objects } from "#shared/aws/s3.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { type Member, type StoredBulk, StoredResult } from "#shared/jobs/bulk/stored.ts";
import { bulkKeys } from "#shared/jobs/s3-keys.ts";
import { Id } from "#shared/schema.ts";

/** Number of records whose results are stored together. After a crash, at most this number is handled again. */
export const CHUNK = 512;
const CHUNKS_PER_PIECE = 32;
const PIECE = CHUNK * CHUNKS_PER_PIECE;

const PARALLEL = 8;

export const chunksOf = (records: number): number => Math.ceil(records / CHUNK);

export async function storeMembers(objects: Objects, job: JobId, ids: Iterable<number>): Promise<number> {
  let total = 0;
  let pieces: { readonly number: number; readonly ids: number[] }[] = [];
  const store = () =>
    mapConcurrently(pieces, PARALLEL, ({ number, ids: own }) =>
      objects.put(bulkKeys.members(job, number), packed(own), "application/octet-stream"),
    );
  for (const member of ids) {
    if (total % PIECE === 0) {
      if (pieces.length === PARALLEL) {
        await store();
        pieces = [];
      }
      pieces.push({ number: total / PIECE, ids: [] });
    }
    pieces.at(-1)?.ids.push(member);
    total++;
  }
  await store();
  return total;
}

/** Returns the records of a chunk, always the same for the same chunk. All chunks together have `total` records. */
export type MemberReader = (chunk: number) => Promise<Member[]>;

type Job = Pick<StoredBulk, "companyId" | "id" | "kind" | "undoes" | "firstId" | "total">;

/** Returns a reader that keeps only the last piece in memory. Read chunks in ascending order, so that each piece is read once. */
export function membersOf(objects: Objects, job: Job): MemberReader {
  const { companyId, kind, undoes = 0, firstId, total } = job;
  if (kind === "undo") {
    const original = { companyId, id: undoes };
    return async (chunk) =>
      (await readResults(objects, original, chunk)).filter(({ outcome }) => outcome === "changed");
  }
  if (firstId !== undefined) {
    return async (chunk) => {
      const from = chunk * CHUNK;
      return Array.from({ length: Math.min(CHUNK, total - from) }, (_, i) => ({ id: firstId + from + i }));
    };
  }
  let read: { piece: number; ids: number[] } | undefined;
  return async (chunk) => {
    const piece = Math.floor(chunk / CHUNKS_PER_PIECE);
    if (read?.piece !== piece)
      read = { piece, ids: unpacked(z.array(Id), await objects.get(bulkKeys.members(job, piece))) };
    const from = (chunk % CHUNKS_PER_PIECE) * CHUNK;
    return read.ids.slice(from, from + CHUNK).map((id) => ({ id }));
  };
}

export const storeResults = (
  objects: Objects,
  job: JobId,
  chunk: number,
  results: readonly StoredResult[],
): Promise<void> => objects.put(bulkKeys.results(job, chunk), packed(results), "application/octet-stream");

export const readResults = async (objects: Objects, job: JobId, chunk: number): Promise<StoredResult[]> =>
  unpacked(z.array(StoredResult), await objects.get(bulkKeys.results(job, chunk)));
