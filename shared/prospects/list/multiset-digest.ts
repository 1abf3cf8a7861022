/** A hash of a set whose members have no defined order. */
import { doubleAt } from "#shared/at.ts";
import type { Matches } from "#shared/company-index/search/match.ts";

/** The sum of the hashes of pairs of numbers, as four words of 32 bits. Different sets have the same sum with a probability of 2^-128. */
export class MultisetDigest {
  readonly #sums = new Int32Array(4);

  /** Both numbers must be integers from 0 to 2^53. */
  add(a: number, b: number): void {
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
/** The seeds of the four words. */
const LANES = [0x9e3779b9, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f] as const;

/** The last steps of MurmurHash3. */
function mixed(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/**
 * Returns numbers for the ETag of map pins and tiles. They depend on the ids and versions of all matches, but not on the order of the
 * matches, because a flush changes it. A SHA-256 hash would need sorted matches, and sorting would take longer than writing the pins.
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
