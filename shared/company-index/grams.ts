/**
 * Which parts of a text can hold a word: of each part it is known which three bytes stand side by side in it. A word that is there has
 * all of its own among them; the converse is likely and no more, for several threes share a bucket.
 */

/** Two words of 32 bits have a bit for each part. */
export const PARTS = 64;
const GRAM = 3;

export class Grams {
  /** Of each bucket two words of bits, one bit for each part. */
  readonly #masks: Uint32Array;
  readonly #buckets: number;

  /** `starts` says where each part begins; one more at the end. */
  constructor(bytes: Uint8Array, starts: Uint32Array) {
    // As many buckets as a part has bytes, since most of its threes are distinct ones.
    this.#buckets = 2 ** Math.max(6, Math.ceil(Math.log2(bytes.length / PARTS + 1)));
    this.#masks = new Uint32Array(2 * this.#buckets);
    for (let part = 0; part + 1 < starts.length; part++)
      this.#add(bytes, starts[part] ?? 0, starts[part + 1] ?? 0, part);
  }

  get byteLength(): number {
    return this.#masks.byteLength;
  }

  #add(bytes: Uint8Array, from: number, to: number, part: number): void {
    const masks = this.#masks;
    const half = part >>> 5;
    const bit = 1 << (part & 31);
    const last = this.#buckets - 1;
    let gram = 0;
    for (let at = from; at < to; at++) {
      gram = ((gram << 8) | (bytes[at] ?? 0)) & 0xffffff;
      if (at - from < GRAM - 1) continue;
      const slot = 2 * (bucketOf(gram) & last) + half;
      masks[slot] = (masks[slot] ?? 0) | bit;
    }
  }

  /** The parts that can hold the word, as two words of bits. A shorter one than three bytes may be anywhere. */
  partsWith(word: Uint8Array): [low: number, high: number] {
    const last = this.#buckets - 1;
    let low = -1;
    let high = -1;
    let gram = 0;
    for (let at = 0; at < word.length; at++) {
      gram = ((gram << 8) | (word[at] ?? 0)) & 0xffffff;
      if (at < GRAM - 1) continue;
      const slot = 2 * (bucketOf(gram) & last);
      low &= this.#masks[slot] ?? 0;
      high &= this.#masks[slot + 1] ?? 0;
      if (low === 0 && high === 0) break;
    }
    return [low, high];
  }
}

const bucketOf = (gram: number): number => Math.imul(gram, 0x9e3779b1) >>> 12;
