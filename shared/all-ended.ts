/** Waits for several promises until all have settled, so that no work is still running when the caller handles a failure. */

/** Waits until both promises have settled, and returns their results. If both fail, throws the error of `a`. */
export async function bothEnded<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}

/** Calls `work` for each entry, at most `parallel` calls at a time. After a failure, starts no new call, but waits for the running ones. */
export async function mapConcurrently<T, R>(
  entries: readonly T[],
  parallel: number,
  work: (entry: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  // All calls of `lane` take entries from this one iterator, so each entry is handled once.
  const left = entries.entries();
  let isFailed = false;
  async function lane(): Promise<void> {
    for (const [i, entry] of left) {
      if (isFailed) return;
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

/** Waits until all promises have settled. If several fail, throws the error of the one that is first in the list. */
export async function allEnded<T>(work: readonly Promise<T>[]): Promise<T[]> {
  return (await Promise.allSettled(work)).map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}
