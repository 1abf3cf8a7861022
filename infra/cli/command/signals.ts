/** SIGINT and SIGTERM, for commands that finish some work before they end. */
import type { EventEmitter } from "node:events";

/** Time within which a second signal is ignored, in milliseconds. */
const REPEAT_MS = 2_000;

/**
 * Calls `stop` at the first signal, and `endNow` at a much later one. A signal soon after the first is ignored, because Ctrl-C signals both
 * npm and this process, and npm forwards its signal.
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
