/** The deadline of the current work. It limits how long a loop waits for a busy service. */
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<() => number>();

/** Runs `work` with a deadline. `remainingMs` gives the milliseconds left, as Lambda's context does. */
export const withDeadline = <T>(remainingMs: () => number, work: () => Promise<T>): Promise<T> =>
  current.run(remainingMs, work);

/** Milliseconds until the deadline; undefined for work without one. */
export const msUntilDeadline = (): number | undefined => current.getStore()?.();
