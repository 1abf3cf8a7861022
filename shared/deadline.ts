/** The deadline of the current work. Code that waits for a busy service reads it. Requests to DynamoDB and long computations check it. */
import { AsyncLocalStorage } from "node:async_hooks";
import { DeadlinePassed } from "#shared/errors.ts";

interface Deadline {
  readonly remainingMs: () => number;
  readonly signal?: AbortSignal;
}

const current = new AsyncLocalStorage<Deadline>();

/** Sets the deadline of `work`, but never stops it. `remainingMs` returns milliseconds, like `getRemainingTimeInMillis` of Lambda. */
export const withDeadline = <T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> =>
  current.run({ remainingMs }, work);

export const msUntilDeadline = (): number | undefined => current.getStore()?.remainingMs();

/** Maximum milliseconds of a timer. Node.js would run a timer with a longer delay at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls `work`. Aborts its requests to DynamoDB at the deadline and when it settles, because they would continue after the response. */
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

/** Stops `work` `reserveMs` before the current deadline, if there is one. */
export function stoppedBefore<T>(reserveMs: number, work: () => Promise<T>): Promise<T> {
  const remainingMs = current.getStore()?.remainingMs;
  return remainingMs === undefined ? work() : stoppedAt(() => remainingMs() - reserveMs, work);
}

/** Returns true if the deadline of the current work has passed. The work must then send no request to DynamoDB. */
export function isStopped(): boolean {
  const deadline = current.getStore();
  return deadline?.signal !== undefined && (deadline.signal.aborted || deadline.remainingMs() <= 0);
}

/** Returns the signal that stops the current work, if there is one. Throws DeadlinePassed if the work was already stopped. */
export function stopSignal(): AbortSignal | undefined {
  if (isStopped()) throw new DeadlinePassed("no time is left for another call of the table");
  return current.getStore()?.signal;
}

/** Milliseconds until a streamed response must begin. DynamoDB requests do not check it, because later parts need DynamoDB too. */
const firstByte = new AsyncLocalStorage<() => number>();

/** Sets the deadline until which `work` must begin a streamed response: `requireTime` throws after it, but only while `work` is running. */
export async function beginningBefore<T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> {
  let hasBegun = false;
  try {
    return await firstByte.run(() => (hasBegun ? Number.POSITIVE_INFINITY : remainingMs()), work);
  } finally {
    hasBegun = true;
  }
}

/** Throws DeadlinePassed after the deadline. No timer can stop code that computes, so long computations call this function often. */
export function requireTime(): void {
  const remainingMs = firstByte.getStore() ?? current.getStore()?.remainingMs;
  if (remainingMs !== undefined && remainingMs() <= 0)
    throw new DeadlinePassed("no time is left to compute the answer");
}
