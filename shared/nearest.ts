/** Finds the known name that a misspelt one probably means. */
import { at } from "#shared/at.ts";
import { folded } from "#shared/caseless.ts";

/** Bounds of the work for one name: 500 comparisons of at most 64 by 64 characters. */
const MOST_NAMES = 500;
const MOST_LETTERS = 64;

/**
 * Returns the known name most similar to `name`. Undefined if more than `farthest` characters must be inserted, removed or replaced.
 * The default of `farthest` is a third of the length of `name`, at most 3, and 0 for a name of one character.
 */
export function nearestOf(name: string, known: Iterable<string>, farthest?: number): string | undefined {
  const given = folded(name.slice(0, MOST_LETTERS));
  const most = farthest ?? (given.length < 2 ? 0 : Math.min(3, Math.ceil(given.length / 3)));
  let [nearest, least]: [string | undefined, number] = [undefined, most + 1];
  let left = MOST_NAMES;
  for (const candidate of known) {
    if (left-- === 0) break;
    const other = folded(candidate.slice(0, MOST_LETTERS));
    if (Math.abs(other.length - given.length) >= least) continue;
    const distance = distanceOf(given, other);
    if (distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** The Levenshtein distance: the least number of characters to insert, remove or replace. */
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 0; i < one.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j++) {
      const replaced = at(row, j) + (one[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, at(row, j + 1) + 1, at(next, j) + 1));
    }
    row = next;
  }
  return at(row, other.length);
}
