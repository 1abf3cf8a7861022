/** The rows of an import for the company index, until they are published: sorted chunks in the bucket, each small enough for the memory. */
import type { Objects } from "#shared/aws/s3.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import { encodeSegment, type Group, groups, type RowWithNotes } from "#shared/company-index/segment.ts";
import { cutIntoSegments, decodedRows, mergeSorted, sortedByGeohash } from "#shared/company-index/write/order.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";

/** A chunk is full when its search texts have this many characters. */
const CHUNK_TEXT = 8_000_000;

/** Collects the rows of a chunk (a file in the bucket, not a row of the change log). */
export class Chunk {
  readonly #objects: Objects;
  readonly #job: JobId;
  #rows: RowWithNotes[] = [];
  #text = 0;
  #number: number;

  constructor(objects: Objects, job: JobId, number: number) {
    this.#objects = objects;
    this.#job = job;
    this.#number = number;
  }

  get isFull(): boolean {
    return this.#text >= CHUNK_TEXT;
  }

  add(entries: readonly RowWithNotes[]): void {
    for (const entry of entries) {
      this.#rows.push(entry);
      this.#text += entry.row.text.length + entry.notes.reduce((sum, note) => sum + note.text.length, 0);
    }
  }

  /** Stores the chunk, unless it is empty, and returns the number of chunks. Call it before the checkpoint that counts the chunk. */
  async store(): Promise<number> {
    if (this.#rows.length === 0) return this.#number;
    const key = importKeys.chunk(this.#job, this.#number++);
    await this.#objects.put(key, encoded(this.#rows), "application/octet-stream");
    this.#rows = [];
    this.#text = 0;
    return this.#number;
  }
}

/** Returns compressed segments, sorted by geohash. A segment consists of three groups of columns. The length of each group precedes it. */
function encoded(rows: readonly RowWithNotes[]): Uint8Array {
  const into = new ByteWriter();
  for (const segment of cutIntoSegments(sortedByGeohash(rows))) {
    const columns = encodeSegment(segment);
    for (const group of groups) {
      into.integer(columns[group].length);
      into.raw(columns[group]);
    }
  }
  return into.finish();
}

/** Merges the sorted chunks. Only one segment of each is decoded at a time. The result can be read only once. */
export async function rowsAlongCurve(objects: Objects, job: JobId, chunks: number): Promise<Iterable<RowWithNotes>> {
  const found = [];
  for (let number = 0; number < chunks; number++) {
    found.push(segmentsIn(await objects.get(importKeys.chunk(job, number))));
  }
  return mergeSorted(found.map(decodedRows));
}

function segmentsIn(bytes: Uint8Array): Record<Group, Uint8Array>[] {
  const from = new ByteReader(bytes);
  const next = (): Uint8Array => from.raw(from.integer());
  const segments: Record<Group, Uint8Array>[] = [];
  while (!from.done) segments.push({ main: next(), geo: next(), text: next() });
  return segments;
}
