/** Works through a batch of stream records by an event source's rules: checkpoints, bisection, retries and what is given up. */
import { failedItems } from "./batch-failures.ts";

export interface StreamRecord {
  readonly dynamodb: {
    readonly SequenceNumber: string;
    /** Seconds since the epoch. */
    readonly ApproximateCreationDateTime: number;
  };
}

export interface BatchRules {
  readonly bisect: boolean;
  readonly reportsFailures: boolean;
  /** -1: without end. */
  readonly maxRetries: number;
  /** -1: any age. */
  readonly maxAgeSeconds: number;
}

export interface BatchEffects<R extends StreamRecord> {
  /** The function's answer as JSON text; throws when the invocation failed. */
  invoke(records: readonly R[]): Promise<string>;
  /** All records up to this one are done with: it survives a crash. */
  checkpoint(sequenceNumber: string): Promise<void>;
  /** Tells the on-failure destination which records were given up. */
  giveUp(records: readonly R[], reason: GivenUp, invocations: number): Promise<void>;
  /** Throws when the source is stopping: an invocation that was broken off is no failure of the records. */
  assertRunning(): void;
  /** Waits before a repetition. Throws when the source is stopping. */
  pause(failures: number): Promise<void>;
  now(): number;
}

export type GivenUp = "RetryAttemptsExhausted" | "MaximumRecordAgeExceeded";

interface Part<R> {
  readonly records: readonly R[];
  readonly failures: number;
}

/** Settles when every record was processed or given up, in the stream's order. */
export async function processBatch<R extends StreamRecord>(
  records: readonly R[],
  rules: BatchRules,
  effects: BatchEffects<R>,
): Promise<void> {
  const parts: Part<R>[] = [{ records, failures: 0 }];
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const fresh = await giveUpTheOld(part, rules, effects);
    if (fresh.length === 0) continue;
    const done = await attempt(fresh, rules, effects);
    const rest = fresh.slice(done.count);
    const last = fresh[done.count - 1];
    if (last !== undefined) await effects.checkpoint(last.dynamodb.SequenceNumber);
    if (rest.length === 0) continue;
    parts.unshift(...(await partsAfterFailure(rest, { ...part, ...done }, rules, effects)));
  }
}

async function giveUpTheOld<R extends StreamRecord>(
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

/** How many records from the first on are done, and whether the function threw instead of reporting. */
async function attempt<R extends StreamRecord>(
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

/** A split does not use up a retry: neither in halves after an error, nor at the record that was reported. */
async function partsAfterFailure<R extends StreamRecord>(
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

async function abandon<R extends StreamRecord>(
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
