/** Sends batches to DynamoDB or SQS until every entry is processed. The SDK repeats only failed calls, not unprocessed entries. */
import { setTimeout as sleep } from "node:timers/promises";
import { msUntilDeadline } from "#shared/deadline.ts";

/** Maximum number of concurrent batches of one `send`. With more batches, some might have to wait for a free connection. */
const SLOTS = 12;
/** The pause before an attempt is random. Its maximum is 25 ms, and doubles after each attempt without progress up to this value. */
const PAUSE_MS = 2_000;
/** If there is no deadline, `send` gives up when no entry was processed for this many milliseconds. */
const PATIENCE_MS = 5_000;
/** `send` gives up this many milliseconds before the deadline, so that the caller can still respond to its client. */
const RESERVE_MS = 2_000;

/** Sends a batch to DynamoDB or SQS. Returns the entries that were not processed. */
export type SendChunk<T> = (chunk: readonly T[]) => Promise<readonly T[]>;

const throttling = /^(ProvisionedThroughputExceeded|RequestLimitExceeded|Throttling)|Throttled/;

const isThrottled = (error: unknown): boolean => error instanceof Error && throttling.test(error.name);

/**
 * Adapts the number of concurrent batches to the rate that DynamoDB or SQS accepts. The number grows slowly, and falls by up to a half when
 * entries stay unprocessed. The next `send` begins with the last number.
 */
export class Pace {
  #slots = SLOTS;
  readonly #Busy: new (
    message: string,
  ) => Error;

  /** @param Busy the error that `send` throws when it gives up */
  constructor(Busy: new (message: string) => Error) {
    this.#Busy = Busy;
  }

  /**
   * Sends batches of at most `size` entries. Throws a `Busy` error RESERVE_MS before the deadline, or, if there is none, when no entry was
   * processed for PATIENCE_MS. No batch is running any more when `send` returns or throws.
   */
  async send<T>(entries: readonly T[], size: number, sendChunk: SendChunk<T>): Promise<void> {
    const progress = { atMs: Date.now() };
    const underWay = new Set<Promise<void>>();
    const failures: unknown[] = [];
    let next = 0;
    while (underWay.size > 0 || (next < entries.length && failures.length === 0)) {
      while (next < entries.length && failures.length === 0 && underWay.size < Math.max(1, Math.floor(this.#slots))) {
        const chunk = entries.slice(next, next + size);
        next += size;
        const sent = this.#untilProcessed(chunk, sendChunk, progress)
          .catch((error: unknown) => void failures.push(error))
          .finally(() => underWay.delete(sent));
        underWay.add(sent);
      }
      await Promise.race(underWay);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #untilProcessed<T>(chunk: readonly T[], sendChunk: SendChunk<T>, progress: { atMs: number }): Promise<void> {
    let pending = chunk;
    for (let fruitless = 0; ; ) {
      const left = await unprocessed(pending, sendChunk);
      this.#adjust(pending.length, left.length);
      if (left.length < pending.length) progress.atMs = Date.now();
      if (left.length === 0) return;
      this.#assertTimeLeft(progress.atMs, left.length);
      fruitless = left.length === pending.length ? fruitless + 1 : 0;
      pending = left;
      const pauseMs = Math.random() * Math.min(PAUSE_MS, 25 * 2 ** fruitless);
      await sleep(Math.min(pauseMs, msUntilReserve()));
      this.#assertTimeLeft(progress.atMs, left.length);
    }
  }

  #adjust(sent: number, left: number): void {
    this.#slots =
      left === 0
        ? Math.min(SLOTS, this.#slots + 1 / this.#slots)
        : Math.max(1, this.#slots * Math.max(0.5, (sent - left) / sent));
  }

  #assertTimeLeft(progressAtMs: number, left: number): void {
    const remaining = msUntilDeadline();
    const isOver = remaining === undefined ? Date.now() - progressAtMs > PATIENCE_MS : remaining < RESERVE_MS;
    if (isOver) throw new this.#Busy(`${left} entries stayed unprocessed`);
  }
}

const msUntilReserve = (): number => Math.max(0, (msUntilDeadline() ?? Number.POSITIVE_INFINITY) - RESERVE_MS + 1);

/** Sends a batch and returns its unprocessed entries. These are all entries if DynamoDB or SQS throttles the whole batch. */
async function unprocessed<T>(pending: readonly T[], sendChunk: SendChunk<T>): Promise<readonly T[]> {
  try {
    return await sendChunk(pending);
  } catch (error) {
    if (isThrottled(error)) return pending;
    throw error;
  }
}
