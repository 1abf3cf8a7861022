/** Divides the environments of a function among the callers that read its streamed responses. */

/**
 * Returns a function that gives a holder a turn (the right to use one environment), and resolves with the function that ends the turn. A
 * holder has at most `most` turns at a time. Lambda has hundreds of environments for a function, but this machine has few, and a client
 * that reads no bytes keeps an environment busy for seconds.
 */
export function createTurns(most: number): (holder: string) => Promise<() => void> {
  const held = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();
  return async (holder) => {
    const count = held.get(holder) ?? 0;
    if (count < most) held.set(holder, count + 1);
    else await new Promise<void>((resolve) => waiting.set(holder, [...(waiting.get(holder) ?? []), resolve]));
    return () => {
      const [next, ...others] = waiting.get(holder) ?? [];
      if (others.length > 0) waiting.set(holder, others);
      else waiting.delete(holder);
      if (next !== undefined) next();
      else held.set(holder, (held.get(holder) ?? 1) - 1);
    };
  };
}
