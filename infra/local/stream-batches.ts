/** Cuts what a stream has told into the batches of an event source, of which each fits an invocation. */

/** Records that are handed over together. */
export interface Batch<R> {
  readonly wanted: readonly R[];
  /** Up to this one all are done with it, those that nobody wants included. */
  readonly last: R;
}

/** Below the 6 MB that an invocation may carry. */
const BATCH_BYTES = 5_500_000;

/** In the order of the records. Only those that are wanted count. */
export function batchesOf<R>(records: readonly R[], isWanted: (record: R) => boolean, size: number): Batch<R>[] {
  const batches: { wanted: R[]; last: R }[] = [];
  let bytes = 0;
  for (const record of records) {
    const current = batches.at(-1);
    const wanted = isWanted(record) ? [record] : [];
    const more = wanted.length === 0 ? 0 : bytesOf(record);
    const isFull = current !== undefined && wanted.length > 0 && current.wanted.length === size;
    if (current === undefined || isFull || bytes + more > BATCH_BYTES) {
      batches.push({ wanted, last: record });
      bytes = more;
    } else {
      current.wanted.push(...wanted);
      current.last = record;
      bytes += more;
    }
  }
  return batches;
}

const bytesOf = (record: unknown): number => Buffer.byteLength(JSON.stringify(record));
