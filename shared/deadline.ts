/** The deadline of the current work. Code that waits for a busy service reads here how long it may wait. */
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<() => number>();

/** Runs `work` with a deadline. `remainingMs` returns the milliseconds until the deadline, like `getRemainingTimeInMillis` of Lambda. */
export const withDeadline = <T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> =>
  current.run(remainingMs, work);

export const msUntilDeadline = (): number | undefined => current.getStore()?.();
