/** The deadline of the work under way: how long a loop that waits for a busy service may go on waiting. */
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<() => number>();

/** Runs `work` with `remainingMs` as its deadline: the milliseconds that are left, as Lambda's context gives them. */
export const withDeadline = <T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> =>
  current.run(remainingMs, work);

/** Milliseconds until the deadline; undefined where the work has none. */
export const msUntilDeadline = (): number | undefined => current.getStore()?.();
