/**
 * Divides stream records into batches, and processes each batch by Lambda's rules. These rules say when to store a checkpoint (the position
 * in the stream), to split a failed batch, to retry, and to give up.
 */
import { failedItems } from "./event-source.ts";

interface Positioned {
  readonly dynamodb: {
    readonly SequenceNumber: string;
    readonly ApproximateCreationDateTime: number;
  };
}

export interface BatchRules {
  readonly bisect: boolean;
  readonly reportsFailures: boolean;
  /** Maximum number of retries. -1 means no limit. */
  readonly maxRetries: number;
  /** Maximum age of a record in seconds. -1 means no limit. */
  readonly maxAgeSeconds: number;
}

export interface BatchEffects<R extends Positioned> {
  invoke(records: readonly R[]): Promise<string>;
  /** Stores the sequence number of the last record that is processed. After a restart, processing continues with the next record. */
  checkpoint(sequenceNumber: string): Promise<void>;
  /** Sends the positions of these records to the on-failure destination. The records are not retried any more. */
  giveUp(records: readonly R[], reason: GivenUp, invocations: number): Promise<void>;
  /** Throws if the service is stopping. An invocation that fails because of the stop must not be counted as a failure. */
  assertRunning(): void;
  pause(failures: number): Promise<void>;
  now(): number;
}

export type GivenUp = "RetryAttemptsExhausted" | "MaximumRecordAgeExceeded";

interface Part<R> {
  readonly records: readonly R[];
  readonly failures: number;
}

/** Processes a batch in the order of the stream. Resolves when every record is processed or given up. */
export async function processBatch<R extends Positioned>(
  records: readonly R[],
  rules: BatchRules,
  effects: BatchEffects<R>,
): Promise<void> {
  const parts: Part<R>[] = [{ records, failures: 0 }];
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const fresh = await abandonOld(part, rules, effects);
    if (fresh.length === 0) continue;
    const done = await attempt(fresh, rules, effects);
    const rest = fresh.slice(done.count);
    const last = fresh[done.count - 1];
    if (last !== undefined) await effects.checkpoint(last.dynamodb.SequenceNumber);
    if (rest.length === 0) continue;
    parts.unshift(...(await partsAfterFailure(rest, { ...part, ...done }, rules, effects)));
  }
}

async function abandonOld<R extends Positioned>(
  { records, failures }: Part<R>,
  { maxAgeSeconds }: BatchRules,
  effects: BatchEffects<R>,
): Promise<readonly R[]> {
  if (maxAgeSeconds === -1) return records;
  const oldest = effects.now() / 1000 - maxAgeSeconds;
  const firstFresh = records.findIndex(({ dynamodb }) => dynamodb.ApproximateCreationDateTime >= oldest);
  const old = firstFresh === -1 ? records : records.slice(0, firstFresh);
  await abandon(old, "MaximumRecordAgeExceeded", failures, effects);
  return records.slice(old.length);
}

/**
 * Invokes the function. `count` is the number of processed records: those before the first failed record. `threw` is true if the function
 * threw an error.
 */
async function attempt<R extends Positioned>(
  records: readonly R[],
  { reportsFailures }: BatchRules,
  effects: BatchEffects<R>,
): Promise<{ count: number; threw: boolean }> {
  let payload: string;
  try {
    payload = await effects.invoke(records);
  } catch {
    effects.assertRunning();
    return { count: 0, threw: true };
  }
  if (!reportsFailures) return { count: records.length, threw: false };
  const failed = failedItems(payload, new Set(records.map(({ dynamodb }) => dynamodb.SequenceNumber)));
  if (failed === "all") return { count: 0, threw: false };
  const lowest = records.findIndex(({ dynamodb }) => failed.has(dynamodb.SequenceNumber));
  return { count: lowest === -1 ? records.length : lowest, threw: false };
}

/**
 * Returns the parts of the batch that must be processed after a failure. `rest` contains the first failed record and all records after it.
 * - If the function processed some records before `rest`, then `rest` is one part. Its next invocation is not counted as a retry.
 * - If the function threw and `bisect` is on, the parts are the two halves of `rest`. The split is not counted as a retry.
 * - Otherwise `rest` is one part, which is retried after a pause. After `maxRetries` retries, its records are given up.
 */
async function partsAfterFailure<R extends Positioned>(
  rest: readonly R[],
  { failures, count, threw }: { failures: number; count: number; threw: boolean },
  { bisect, maxRetries }: BatchRules,
  effects: BatchEffects<R>,
): Promise<Part<R>[]> {
  if (count > 0) return [{ records: rest, failures }];
  if (threw && bisect && rest.length > 1) {
    const middle = Math.ceil(rest.length / 2);
    return [
      { records: rest.slice(0, middle), failures },
      { records: rest.slice(middle), failures },
    ];
  }
  if (maxRetries !== -1 && failures >= maxRetries) {
    await abandon(rest, "RetryAttemptsExhausted", failures + 1, effects);
    return [];
  }
  await effects.pause(failures + 1);
  return [{ records: rest, failures: failures + 1 }];
}

async function abandon<R extends Positioned>(
  records: readonly R[],
  reason: GivenUp,
  invocations: number,
  effects: BatchEffects<R>,
): Promise<void> {
  const last = records.at(-1);
  if (last === undefined) return;
  await effects.giveUp(records, reason, invocations);
  await effects.checkpoint(last.dynamodb.SequenceNumber);
}

export interface Batch<R> {
  readonly wanted: readonly R[];
  /**
   * The last record that was read for this batch. It is not in `wanted` if the filter of the event source refused it. After the batch,
   * processing continues with the record that follows it.
   */
  readonly last: R;
}

/**
 * Maximum total size of the records in a batch. Lambda accepts events of at most 6 MB. The other 0.5 MB are for the JSON around the
 * records.
 */
const BATCH_BYTES = 5_500_000;

/**
 * Divides the records into batches in their order. `isWanted` is the filter of the event source. A batch contains at most `size` records
 * that the filter accepts, with at most `BATCH_BYTES` in total.
 */
export function batchesOf<R>(records: readonly R[], isWanted: (record: R) => boolean, size: number): Batch<R>[] {
  const batches: { wanted: R[]; last: R }[] = [];
  let bytes = 0;
  for (const record of records) {
    const current = batches.at(-1);
    const wanted = isWanted(record) ? [record] : [];
    const more = wanted.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(record));
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
