/**
 * Sends the chunks of a batch until the table has processed every entry, no faster than the table takes them. DynamoDB answers a
 * throttled batch in part, or refuses all of it: both count as entries left over.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { msUntilDeadline } from "#shared/deadline.ts";
import { TableBusy } from "#shared/errors.ts";

/** Chunks under way at once: more would only wait for a connection. */
const SLOTS = 12;
/** The longest pause after an answer that processed nothing. */
const PAUSE_MS = 2_000;
/** Work without a deadline gives up after so long without progress. */
const PATIENCE_MS = 5_000;
/** Work with a deadline gives up when so little is left: its caller still has to report it. */
const RESERVE_MS = 2_000;

/** Sends one chunk and gives the entries that were left over. */
export type SendChunk<T> = (chunk: readonly T[]) => Promise<readonly T[]>;

/** The pace of one table, which outlives a batch: additive increase, multiplicative decrease of the chunks under way. */
export class Pace {
  #slots = SLOTS;

  /** Throws TableBusy where the deadline comes, or patience ends, before every entry is processed. No chunk outlives the call. */
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
      const left = await sendChunk(pending);
      this.#adjust(pending.length, left.length);
      if (left.length < pending.length) progress.atMs = Date.now();
      if (left.length === 0) return;
      assertTimeLeft(progress.atMs, left.length);
      fruitless = left.length === pending.length ? fruitless + 1 : 0;
      pending = left;
      const pauseMs = Math.random() * Math.min(PAUSE_MS, 25 * 2 ** fruitless);
      await sleep(Math.min(pauseMs, msUntilReserve()));
      assertTimeLeft(progress.atMs, left.length);
    }
  }

  #adjust(sent: number, left: number): void {
    this.#slots =
      left === 0
        ? Math.min(SLOTS, this.#slots + 1 / this.#slots)
        : Math.max(1, this.#slots * Math.max(0.5, (sent - left) / sent));
  }
}

const msUntilReserve = (): number => Math.max(0, (msUntilDeadline() ?? Number.POSITIVE_INFINITY) - RESERVE_MS + 1);

function assertTimeLeft(progressAtMs: number, left: number): void {
  const remaining = msUntilDeadline();
  const isOver = remaining === undefined ? Date.now() - progressAtMs > PATIENCE_MS : remaining < RESERVE_MS;
  if (isOver) throw new TableBusy(`${left} keys stayed unprocessed`);
}
