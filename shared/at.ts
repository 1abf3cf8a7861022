/** Access to an element that must exist. */

/** Throws if there is no element at `index`, because only a defect of the caller can cause this. */
export function at<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  if (item === undefined) throw new Error(`no element ${index} of ${items.length}`);
  return item;
}
