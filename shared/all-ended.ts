/**
 * Runs concurrent work that never outlives its caller. Each function waits until all promises have ended, even if one promise fails early.
 */

/** Returns both results. If one promise fails, throws the first failure after both promises have ended. */
export async function bothEnded<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}

/** Works on at most `parallel` entries at the same time, in the order of the list. Starts no further entry after a failure. */
export async function mapConcurrently<T, R>(
  entries: readonly T[],
  parallel: number,
  work: (entry: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  let isFailed = false;
  async function lane(): Promise<void> {
    for (let i = next++; i < entries.length && !isFailed; i = next++) {
      const [entry] = entries.slice(i, i + 1);
      if (entry === undefined) continue;
      try {
        results[i] = await work(entry);
      } catch (error) {
        isFailed = true;
        throw error;
      }
    }
  }
  await allEnded(Array.from({ length: Math.min(parallel, entries.length) }, lane));
  return results;
}

/** Returns all results. If promises fail, waits until all have ended and throws the failure that comes first in the list. */
export async function allEnded<T>(work: readonly Promise<T>[]): Promise<T[]> {
  return (await Promise.allSettled(work)).map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}
