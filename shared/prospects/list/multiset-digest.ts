/** A hash of a set whose members have no defined order. */
import { doubleAt } from "#shared/at.ts";
import type { Matches } from "#shared/company-index/search/match.ts";

/**
 * A hash of pairs of numbers that does not depend on the order of the pairs. Each pair is hashed to four words of 32 bits, and the result
 * is the sum of these hashes. Two different sets of pairs have the same result with a probability of about 2^-128. A pair takes about 10
 * ns.
 */
export class MultisetDigest {
  readonly #sums = new Int32Array(4);

  /** Adds a pair. Both numbers must be integers from 0 to 2^53. */
  add(a: number, b: number): void {
    // Both numbers are divided into halves of 32 bits. The four words use different seeds, so that they are independent of each other.
    const [low, high] = [a | 0, (a / WORD) | 0];
    const [low2, high2] = [b | 0, (b / WORD) | 0];
    for (let lane = 0; lane < LANES.length; lane++) {
      let word = LANES[lane] ?? 0;
      word = mixed(word ^ low);
      word = mixed(word ^ high);
      word = mixed(word ^ low2);
      word = mixed(word ^ high2);
      this.#sums[lane] = ((this.#sums[lane] ?? 0) + word) | 0;
    }
  }

  get sums(): readonly number[] {
    return [...this.#sums];
  }
}

const WORD = 2 ** 32;
const LANES = [0x9e3779b9, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f] as const;

/** The last steps of MurmurHash3. Each changed bit of the input changes about half of the bits of the result. */
function mixed(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/**
 * Returns numbers for the ETag of map pins and map tiles. They depend on the ids and versions of all matches, but not on the order of the
 * matches. The order changes when new entries of the search index are merged into its segments, and the ETag must then stay the same. A
 * SHA-256 hash would need sorted matches, and the sorting alone would take longer than writing the map pins.
 */
export function digestOf({ segments, unflushed, total }: Pick<Matches, "segments" | "unflushed" | "total">): number[] {
  const digest = new MultisetDigest();
  for (const { inView, rows } of segments) {
    const { ids, versions } = inView.segment.main;
    for (const row of rows) digest.add(doubleAt(ids, row), doubleAt(versions, row));
  }
  for (const { id, version } of unflushed) digest.add(id, version);
  return [total, ...digest.sums];
}
