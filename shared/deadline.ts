/**
 * The deadline of the current work. Code that waits for a busy service reads here how long it may wait. Each request to DynamoDB first
 * checks here that the work has not been stopped.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { DeadlinePassed } from "#shared/errors.ts";

interface Deadline {
  readonly remainingMs: () => number;
  /** Aborts the running requests to DynamoDB at the deadline. `withDeadline` sets no signal, so the work that it runs is never stopped. */
  readonly signal?: AbortSignal;
}

const current = new AsyncLocalStorage<Deadline>();

/** Runs `work` with a deadline. `remainingMs` returns the milliseconds until the deadline, like `getRemainingTimeInMillis` of Lambda. */
export const withDeadline = <T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> =>
  current.run({ remainingMs }, work);

export const msUntilDeadline = (): number | undefined => current.getStore()?.remainingMs();

/** Maximum delay of a Node.js timer. Node.js would run a timer with a longer delay at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `work` with a deadline, and stops it at the deadline: running requests to DynamoDB are aborted and no further one begins. `work` may
 * begin requests without waiting for their end. If such requests are still running when the promise of `work` settles, they are aborted
 * too. Otherwise they would continue after the client has its response.
 */
export async function stoppedAt<T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> {
  const outer = current.getStore()?.signal;
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(), Math.min(LONGEST_TIMER_MS, Math.max(0, remainingMs())));
  timer.unref();
  const signal = outer === undefined ? own.signal : AbortSignal.any([outer, own.signal]);
  try {
    return await current.run({ remainingMs, signal }, work);
  } finally {
    clearTimeout(timer);
    own.abort();
  }
}

/** Runs `work` and stops it `reserveMs` before the current deadline. If there is no deadline, `work` is not stopped. */
export function stoppedBefore<T>(reserveMs: number, work: () => Promise<T>): Promise<T> {
  const remainingMs = current.getStore()?.remainingMs;
  return remainingMs === undefined ? work() : stoppedAt(() => remainingMs() - reserveMs, work);
}

/** Returns true if the current work runs in `stoppedAt` and was stopped, so that it must not send another request to DynamoDB. */
export function isStopped(): boolean {
  const { signal, remainingMs } = current.getStore() ?? {};
  return signal !== undefined && (signal.aborted || (remainingMs?.() ?? 0) <= 0);
}

/**
 * Returns the signal that aborts requests when the current work is stopped, or undefined if the work is never stopped. Throws
 * DeadlinePassed if the work was already stopped.
 */
export function stopSignal(): AbortSignal | undefined {
  if (isStopped()) throw new DeadlinePassed("no time is left for another call of the table");
  return current.getStore()?.signal;
}
