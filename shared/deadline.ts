/**
 * The deadline of the current work. Code that waits for a busy service reads here how long it may wait. Each call of the table first checks
 * here whether it may still begin.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { DeadlinePassed } from "#shared/errors.ts";

interface Deadline {
  readonly remainingMs: () => number;
  /** Aborts the running calls when the deadline is reached. Work without a signal is never stopped. */
  readonly signal?: AbortSignal;
}

const current = new AsyncLocalStorage<Deadline>();

/** Runs `work` with a deadline. `remainingMs` returns the milliseconds until the deadline, like `getRemainingTimeInMillis` of Lambda. */
export const withDeadline = <T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> =>
  current.run({ remainingMs }, work);

export const msUntilDeadline = (): number | undefined => current.getStore()?.remainingMs();

/** Maximum milliseconds of a Node.js timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `work` with a deadline, and stops it at the deadline: running calls of the table are aborted and no further call begins. It also
 * stops work that is still running after the promise of `work` has settled, for example because the client already has an answer.
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

/** Returns true if the current work has reached its deadline, so that it must not begin another call. */
export function isStopped(): boolean {
  const { signal, remainingMs } = current.getStore() ?? {};
  return signal !== undefined && (signal.aborted || (remainingMs?.() ?? 0) <= 0);
}

/** Returns the signal that aborts a call when the work is stopped. Throws DeadlinePassed if the work is already stopped. */
export function stopSignal(): AbortSignal | undefined {
  if (isStopped()) throw new DeadlinePassed("no time is left for another call of the table");
  return current.getStore()?.signal;
}
