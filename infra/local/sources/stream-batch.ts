/**
 * Divides stream records into batches, and processes each batch by Lambda's rules: when to store a checkpoint (the position in the stream),
 * to split a failed batch, to retry, and to give up.
 */
import { at } from "#shared/at.ts";
import { failedItems } from "./poller.ts";
import type { StreamRecord } from "./stream-record.ts";

type Records = readonly StreamRecord[];

export interface BatchRules {
  readonly bisect: boolean;
  /** Maximum number of retries. -1 means no limit. */
  readonly maxRetries: number;
  /** Maximum age of a record in seconds. -1 means no limit. */
  readonly maxAgeSeconds: number;
}

interface BatchEffects {
  invoke(records: Records): Promise<string>;
  /** Stores the sequence number of the last record that is processed. After a restart, processing continues with the next record. */
  checkpoint(sequenceNumber: string): Promise<void>;
  /** Sends the positions of these records to the on-failure destination. The records are not retried any more. */
  giveUp(records: Records, reason: GivenUp, invocations: number): Promise<void>;
  /** Throws if the service is stopping. An invocation that fails because of the stop must not be counted as a failure. */
  assertRunning(): void;
  pause(failures: number): Promise<void>;
  now(): number;
}

export type GivenUp = "RetryAttemptsExhausted" | "MaximumRecordAgeExceeded";

interface Part {
  readonly records: Records;
  readonly failures: number;
}

/** Processes a batch in the order of the stream. Resolves when every record is processed or given up. */
export async function processBatch(records: Records, rules: BatchRules, effects: BatchEffects): Promise<void> {
  const parts: Part[] = [{ records, failures: 0 }];
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const { failures } = part;
    const old = oldOf(part.records, rules, effects);
    await abandon(old, "MaximumRecordAgeExceeded", failures, effects);
    const fresh = part.records.slice(old.length);
    if (fresh.length === 0) continue;
    const { count, threw } = await attempt(fresh, effects);
    await checkpoint(fresh.slice(0, count), effects);
    const rest = fresh.slice(count);
    if (rest.length === 0) continue;
    // An invocation that has processed some records does not count as a failure.
    if (count > 0) parts.unshift({ records: rest, failures });
    else parts.unshift(...(await partsAfterFailure({ records: rest, failures }, threw, rules, effects)));
  }
}

function oldOf(records: Records, { maxAgeSeconds }: BatchRules, effects: BatchEffects): Records {
  if (maxAgeSeconds === -1) return [];
  const oldest = effects.now() / 1000 - maxAgeSeconds;
  const firstFresh = records.findIndex(({ dynamodb }) => dynamodb.ApproximateCreationDateTime >= oldest);
  return firstFresh === -1 ? records : records.slice(0, firstFresh);
}

/** Invokes the function. Returns whether it threw, and in `count` the number of records before the first failed one. */
async function attempt(records: Records, effects: BatchEffects): Promise<{ count: number; threw: boolean }> {
  let payload: string;
  try {
    payload = await effects.invoke(records);
  } catch {
    effects.assertRunning();
    return { count: 0, threw: true };
  }
  const failed = failedItems(payload, new Set(records.map(({ dynamodb }) => dynamodb.SequenceNumber)));
  if (failed === "all") return { count: 0, threw: false };
  const lowest = records.findIndex(({ dynamodb }) => failed.has(dynamodb.SequenceNumber));
  return { count: lowest === -1 ? records.length : lowest, threw: false };
}

/**
 * Handles an invocation that has processed none of its records. Returns how they are divided into the next invocations:
 * - If the function threw and `bisect` is on, the records are divided into two halves. The division does not count as a retry.
 * - Otherwise all records are retried together after a pause. After `maxRetries` retries, they are given up.
 */
async function partsAfterFailure(
  { records, failures }: Part,
  threw: boolean,
  { bisect, maxRetries }: BatchRules,
  effects: BatchEffects,
): Promise<Part[]> {
  if (threw && bisect && records.length > 1) {
    const middle = Math.ceil(records.length / 2);
    return [records.slice(0, middle), records.slice(middle)].map((half) => ({ records: half, failures }));
  }
  if (maxRetries !== -1 && failures >= maxRetries) {
    await abandon(records, "RetryAttemptsExhausted", failures + 1, effects);
    return [];
  }
  await effects.pause(failures + 1);
  return [{ records, failures: failures + 1 }];
}

async function abandon(records: Records, reason: GivenUp, invocations: number, effects: BatchEffects): Promise<void> {
  if (records.length === 0) return;
  await effects.giveUp(records, reason, invocations);
  await checkpoint(records, effects);
}

async function checkpoint(records: Records, effects: BatchEffects): Promise<void> {
  if (records.length > 0) await effects.checkpoint(at(records, records.length - 1).dynamodb.SequenceNumber);
}

export interface Batch {
  readonly records: Records;
  /** The position of the last record, which the filter of the event source may have refused. */
  readonly position: string;
}

/** Maximum bytes of the records in a batch. Lambda accepts events of at most 6 MB. The other 0.5 MB are for the JSON around the records. */
const BATCH_BYTES = 5_500_000;

interface StreamEntry {
  readonly position: string;
  /** Undefined if the filter of the event source refuses the record. */
  readonly record: StreamRecord | undefined;
}

export function batchesOf(entries: readonly StreamEntry[], size: number): Batch[] {
  const batches: { records: StreamRecord[]; position: string }[] = [];
  let bytes = 0;
  for (const { record, position } of entries) {
    const records = record === undefined ? [] : [record];
    const more = records.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(records));
    const current = batches.at(-1);
    const isFull = records.length > 0 && (current?.records.length === size || bytes + more > BATCH_BYTES);
    if (current === undefined || isFull) {
      batches.push({ records, position });
      bytes = more;
    } else {
      current.records.push(...records);
      current.position = position;
      bytes += more;
    }
  }
  return batches;
}
