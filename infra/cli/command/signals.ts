/** Handles SIGINT and SIGTERM in commands that finish some work before they end, and asks whether a process runs. */
import type { EventEmitter } from "node:events";
import { codeOf } from "./error.ts";

/** Time within which a second signal is ignored, in milliseconds. */
const REPEAT_MS = 2_000;

/** Calls `stop` at the first signal and `endNow` at a later one. Ignores the early second signal that npm forwards after Ctrl-C. */
export function onSignal(
  stop: () => void,
  endNow: () => void,
  { signals = process, now = () => performance.now() }: { signals?: EventEmitter; now?: () => number } = {},
): void {
  let first: number | undefined;
  const signalled = (): void => {
    if (first === undefined) stop();
    else if (now() - first > REPEAT_MS) endNow();
    first ??= now();
  };
  signals.on("SIGINT", signalled).on("SIGTERM", signalled);
}

/** Returns true if a process has this id. It may belong to another user. */
export function isRunning(pid: number): boolean {
  try {
    // The ids 0 and below would mean groups of processes.
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}
