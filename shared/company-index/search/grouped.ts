/** Sorts numbers into groups in linear time (counting sort). */
import { uint32At } from "#shared/at.ts";

export interface Grouped {
  /** The position of the first item of each group, and the end of the last group. */
  readonly starts: Uint32Array;
  readonly items: Uint32Array;
}

/** `count` is the number of groups. `groupOf` returns the group of the item at an index. Items of the same group keep their order. */
export function groupedBy(items: Uint32Array, count: number, groupOf: (index: number) => number): Grouped {
  const groups = new Uint32Array(items.length);
  const starts = new Uint32Array(count + 1);
  for (let i = 0; i < items.length; i++) {
    const group = groupOf(i);
    groups[i] = group;
    starts[group + 1] = uint32At(starts, group + 1) + 1;
  }
  for (let group = 1; group < count; group++) starts[group + 1] = uint32At(starts, group + 1) + uint32At(starts, group);
  const next = starts.slice();
  const sorted = new Uint32Array(items.length);
  for (let i = 0; i < items.length; i++) {
    const group = uint32At(groups, i);
    const at = uint32At(next, group);
    sorted[at] = uint32At(items, i);
    next[group] = at + 1;
  }
  return { starts, items: sorted };
}

export function numbersTo(count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = i;
  return numbers;
}
