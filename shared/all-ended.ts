/** Work done at the same time, to its end: what one of it has begun must not outlive a call that another made fail. */

/** All results, or the first failure in the order of the list, once each has ended. */
export async function allEnded<T>(work: readonly Promise<T>[]): Promise<T[]> {
  return (await Promise.allSettled(work)).map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}
