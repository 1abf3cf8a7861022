/** SIGINT and SIGTERM, for commands that finish some work before they end. */
import type { EventEmitter } from "node:events";

/** Time within which a second signal is ignored, in milliseconds. */
const REPEAT_MS = 2_000;

/**
 * Calls `stop` at the first signal, and `endNow` at a signal more than `REPEAT_MS` later. An earlier second signal is ignored: after
 * Ctrl-C, this process gets one signal from the terminal and one that npm forwards.
 */
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
