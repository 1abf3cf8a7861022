/** Stores the deadline of the current work, which limits how long a loop waits for a busy service. */
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<() => number>();

/** Runs `work` with a deadline. `remainingMs` returns the milliseconds until the deadline, like the function of Lambda's context. */
export const withDeadline = <T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> =>
  current.run(remainingMs, work);

/** The milliseconds until the deadline; undefined if the work has no deadline. */
export const msUntilDeadline = (): number | undefined => current.getStore()?.();
