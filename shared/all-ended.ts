/** Waits for several promises until all have settled, so that no work is still running when the caller handles a failure. */

/** If both promises fail, throws the error of `a`. */
export async function bothEnded<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}

/** The results are in the order of `entries`. After a failure, no further call starts, and the running calls end first. */
export async function mapConcurrently<T, R>(
  entries: readonly T[],
  parallel: number,
  work: (entry: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  // Each call of `lane` handles one entry after the other. All calls take their entries from this iterator.
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

/** If several promises fail, throws the error of the first of them in the list. */
export async function allEnded<T>(work: readonly Promise<T>[]): Promise<T[]> {
  return (await Promise.allSettled(work)).map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}
