/** Writes the rows of a checked file to the table, where they are still invisible, and its index rows to the bucket, in sorted chunks. */
import type { Objects } from "#shared/aws/s3.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import { encodeSegment, type Group, groups, type RowWithNotes } from "#shared/company-index/segment.ts";
import { cutIntoSegments, decodedRows, mergeSorted, sortedByGeohash } from "#shared/company-index/write/order.ts";
import type { JobContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { ImportLease } from "#shared/jobs/import/lease.ts";
import { addTags, type ImportNames } from "#shared/jobs/import/names.ts";
import { batchesOf, type FileReading, NewTags, plus, readRows } from "#shared/jobs/import/read-file.ts";
import { type ImportPlan, leaseImportIds, rowsOf } from "#shared/jobs/import/rows.ts";
import type { Counts, Progress } from "#shared/jobs/import/stored.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";

/** Items between two checks of the lease. A throttled table may accept only four a second, so this is at most 50 seconds. */
const ITEMS_PER_RENEWAL = 200;
/** The lease expires after two minutes. */
const LEASE_RENEWAL_MS = 60_000;
/** A chunk ends at this number of rows, or of characters in their search texts, to fit into memory. */
const CHUNK_ROWS = 16_384;
const CHUNK_TEXT = 8_000_000;

/** The first invocation of the step reserves ids, sets the creation time and creates tags. Later ones use the stored values. */
export async function planRows(context: JobContext, lease: ImportLease, names: ImportNames): Promise<ImportPlan> {
  const { companyId, id: importId } = lease.stored;
  const { job } = lease;
  const { total, progress } = job;
  if (total === null) throw new Error("rows cannot be written before they are counted");
  if (job.first !== null && job.startedAt !== null) {
    return { importId, names, now: job.startedAt, first: job.first, total };
  }
  const known = await addTags(context, { companyId, id: importId }, names, progress.newTags);
  const { first, ...blocks } = await leaseImportIds(context.ids, companyId, importId, total);
  const now = iso(context.clock.now());
  await lease.save({ ...blocks, job: { ...job, first, startedAt: now, progress: { ...progress, newTags: [] } } });
  return { importId, names: known, now, first, total };
}

/** Writes each batch while the next one is being read. Returns false if the time is too short for the rest. */
export async function writeRows(
  context: JobContext,
  lease: ImportLease,
  plan: ImportPlan,
  file: FileReading,
): Promise<boolean> {
  const { job } = lease;
  const { companyId, id, createdBy: userId } = lease.stored;
  const { dictionary } = plan.names;
  const tags = new NewTags(dictionary, job.progress.newTags);
  let writing: Promise<void> = Promise.resolve();
  const chunk = new Chunk(context, lease);
  let { done, row } = job.progress;
  /** Milliseconds of the slowest batch so far. The invocation stops if another one would not end in time. */
  let longestMs = 0;
  const bytes = context.objects.read(importKeys.uploaded(companyId, id), job.etag ?? "");
  const reading = { ...file, dictionary, tags, after: row };
  const checkpoint = async (): Promise<void> => {
    await writing;
    await chunk.store({ done, row, newTags: tags.values });
  };
  try {
    for await (const batch of batchesOf(readRows(bytes, reading))) {
      const next = plus(done, batch);
      if (exceeds(next, plan.total)) throw new BadFile(CHANGED_READING);
      const { items, indexed } = rowsOf({ companyId, userId, ...job.caller }, plan, done, batch.drafts);
      await writing;
      const written = Math.max(lease.stored.written ?? 0, job.progress.updated + done.prospect);
      await lease.heartbeat({ written });
      const begunAt = context.clock.now();
      writing = writeItems(context, lease, items, written).then(() => {
        longestMs = Math.max(longestMs, context.clock.now() - begunAt);
      });
      // Prevents an unhandled rejection. The next `await writing` throws the error.
      writing.catch(() => undefined);
      done = next;
      row = batch.row;
      chunk.add(indexed);
      if (!chunk.isFull && !lease.isLate(longestMs)) continue;
      await checkpoint();
      if (!lease.isLate(longestMs)) continue;
      await lease.release({});
      return false;
    }
    if (!chunk.isEmpty) await checkpoint();
    return true;
  } finally {
    // Nothing may write after the invocation has ended.
    await writing.catch(() => undefined);
  }
}

/** The reserved ids are not enough if a new release accepts rows that were faulty for the release that checked the file. */
const CHANGED_READING = "The service was updated while it imported the file. Import the file again.";
const exceeds = (done: Counts, total: Counts): boolean =>
  done.prospect > total.prospect ||
  done.address > total.address ||
  done.note > total.note ||
  done.change > total.change;

/** Renews the lease meanwhile, because a throttled table makes the writes slow. */
async function writeItems(
  context: JobContext,
  lease: ImportLease,
  items: readonly (Key & Item)[],
  written: number,
): Promise<void> {
  for (let at = 0; at < items.length; at += ITEMS_PER_RENEWAL) {
    await lease.heartbeat({ written }, LEASE_RENEWAL_MS);
    await context.table.batchPut(items.slice(at, at + ITEMS_PER_RENEWAL));
  }
}

/** Call `store` when `isFull` is true. */
class Chunk {
  readonly #context: JobContext;
  readonly #lease: ImportLease;
  #rows: RowWithNotes[] = [];
  #text = 0;
  #number: number;

  constructor(context: JobContext, lease: ImportLease) {
    this.#context = context;
    this.#lease = lease;
    this.#number = lease.job.progress.stretches;
  }

  get isFull(): boolean {
    return this.#rows.length >= CHUNK_ROWS || this.#text >= CHUNK_TEXT;
  }

  get isEmpty(): boolean {
    return this.#rows.length === 0;
  }

  add(entries: readonly RowWithNotes[]): void {
    for (const entry of entries) {
      this.#rows.push(entry);
      this.#text += entry.row.text.length + entry.notes.reduce((sum, note) => sum + note.text.length, 0);
    }
  }

  /** Stores the chunk before the checkpoint, which therefore never counts a missing chunk. */
  async store(at: Pick<Progress, "done" | "row" | "newTags">): Promise<void> {
    const { job } = this.#lease;
    await storeChunk(this.#context.objects, this.#lease.stored, this.#number++, this.#rows);
    this.#rows = [];
    this.#text = 0;
    const progress = { ...job.progress, ...at, stretches: this.#number };
    await this.#lease.save({ job: { ...job, runs: 0, progress } });
  }
}

const LENGTH_BYTES = 4;

/** Stores a chunk as compressed segments, sorted by geohash. The length of each of the three column groups is stored before it. */
async function storeChunk(
  objects: Objects,
  { companyId, id }: JobId,
  number: number,
  rows: readonly RowWithNotes[],
): Promise<void> {
  const pieces = [...cutIntoSegments(sortedByGeohash(rows))].map(encodeSegment).flatMap((segment) =>
    groups.flatMap((group) => {
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt32LE(segment[group].length);
      return [length, segment[group]];
    }),
  );
  await objects.put(importKeys.chunk(companyId, id, number), Buffer.concat(pieces), "application/octet-stream");
}

/** Merges the sorted chunks. Only one segment of each is decoded at a time. The result can be read only once. */
export async function rowsAlongCurve(
  objects: Objects,
  { companyId, id }: JobId,
  chunks: number,
): Promise<Iterable<RowWithNotes>> {
  const found = [];
  for (let number = 0; number < chunks; number++) {
    found.push(segmentsIn(await objects.get(importKeys.chunk(companyId, id, number))));
  }
  return mergeSorted(found.map(decodedRows));
}

function segmentsIn(bytes: Uint8Array): Record<Group, Uint8Array>[] {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const segments: Record<Group, Uint8Array>[] = [];
  let at = 0;
  const next = (): Uint8Array => {
    const from = at + LENGTH_BYTES;
    at = from + view.readUInt32LE(at);
    return view.subarray(from, at);
  };
  while (at < view.length) segments.push({ main: next(), geo: next(), text: next() });
  return segments;
}
