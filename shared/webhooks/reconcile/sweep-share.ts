/** How the sweeper divides what one run can do: no company's backlog takes the part of another. */

/** Entries of one company that a run takes: every `stride`-th one, in each run another. */
export type Strides = (companyId: number) => number;

/**
 * `counts`: entries by company. A company with fewer than an equal part has all of its entries taken; what it leaves is divided among
 * the others. So a run takes at most `capacity` entries and one of each company, and a backlog of any size is gone through in
 * `stride` runs.
 */
export function fairStrides(counts: ReadonlyMap<number, number>, capacity: number): Strides {
  const part = capacity / Math.max(1, counts.size);
  let [left, large] = [0, 0];
  for (const count of counts.values()) {
    if (count > part) large++;
    else left += part - count;
  }
  const share = Math.max(1, part + left / Math.max(1, large));
  return (companyId) => Math.max(1, Math.ceil((counts.get(companyId) ?? 0) / share));
}
