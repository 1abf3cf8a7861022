/** Distinct words in the order in which they come, and which texts each of them stands in: open addressing in typed arrays. */

const BLANK = 0x20;
const LINE_BREAK = 0x0a;
/** Of a slot: no word is there. */
const FREE = 0xffffffff;
const NO_TEXT = 0xffffffff;

export class WordList {
  readonly #bytes: Uint8Array;
  /** Of each slot the number of its word; at least half of them are free. */
  #slots: Uint32Array;
  #size = 0;
  /** Of each word where it stands first, its length, and the last text that it was met in. */
  #froms: Uint32Array;
  #lengths: Uint32Array;
  #lastTexts: Uint32Array;
  /** Words and texts side by side, each pair once. */
  #pairWords: Uint32Array;
  #pairTexts: Uint32Array;
  #pairs = 0;

  /** The words stand in `bytes`, UTF-8, with a blank or a line break behind each. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    const room = 2 ** Math.ceil(Math.log2(bytes.length / 32 + 32));
    this.#slots = new Uint32Array(2 * room).fill(FREE);
    this.#froms = new Uint32Array(room);
    this.#lengths = new Uint32Array(room);
    this.#lastTexts = new Uint32Array(room).fill(NO_TEXT);
    this.#pairWords = new Uint32Array(Math.ceil(bytes.length / 6) + 64);
    this.#pairTexts = new Uint32Array(this.#pairWords.length);
  }

  get size(): number {
    return this.#size;
  }

  /** The words between two places of the bytes stand in this text. */
  addText(from: number, to: number, text: number): void {
    const bytes = this.#bytes;
    let first = from;
    let hash = 0;
    for (let at = from; at < to; at++) {
      const byte = bytes[at] ?? BLANK;
      if (byte !== BLANK && byte !== LINE_BREAK) {
        hash = hashed(hash, byte);
        continue;
      }
      if (at > first) this.#add(this.#wordAt(first, at - first, hash), text);
      first = at + 1;
      hash = 0;
    }
  }

  fromOf(word: number): number {
    return this.#froms[word] ?? 0;
  }

  /** In bytes. */
  lengthOf(word: number): number {
    return this.#lengths[word] ?? 0;
  }

  /** Every word of every text, once each, side by side; texts in the order in which they came. */
  get pairs(): { words: Uint32Array; texts: Uint32Array } {
    return { words: this.#pairWords.subarray(0, this.#pairs), texts: this.#pairTexts.subarray(0, this.#pairs) };
  }

  #add(word: number, text: number): void {
    if (this.#lastTexts[word] === text) return;
    this.#lastTexts[word] = text;
    if (this.#pairs === this.#pairWords.length) {
      this.#pairWords = doubled(this.#pairWords);
      this.#pairTexts = doubled(this.#pairTexts);
    }
    this.#pairWords[this.#pairs] = word;
    this.#pairTexts[this.#pairs++] = text;
  }

  #wordAt(from: number, length: number, hash: number): number {
    const [bytes, slots, froms, lengths] = [this.#bytes, this.#slots, this.#froms, this.#lengths];
    const mask = slots.length - 1;
    let slot = spread(hash) & mask;
    for (let word = slots[slot] ?? FREE; word !== FREE; word = slots[slot] ?? FREE) {
      if (lengths[word] === length && isSame(bytes, froms[word] ?? 0, from, length)) return word;
      slot = (slot + 1) & mask;
    }
    slots[slot] = this.#size;
    froms[this.#size] = from;
    lengths[this.#size] = length;
    if (++this.#size === froms.length) this.#grow();
    return this.#size - 1;
  }

  #grow(): void {
    this.#froms = doubled(this.#froms);
    this.#lengths = doubled(this.#lengths);
    this.#lastTexts = doubled(this.#lastTexts).fill(NO_TEXT, this.#size);
    this.#slots = new Uint32Array(this.#slots.length * 2).fill(FREE);
    const mask = this.#slots.length - 1;
    for (let word = 0; word < this.#size; word++) {
      const from = this.fromOf(word);
      let hash = 0;
      for (let at = from; at < from + this.lengthOf(word); at++) hash = hashed(hash, this.#bytes[at] ?? 0);
      let slot = spread(hash) & mask;
      while (this.#slots[slot] !== FREE) slot = (slot + 1) & mask;
      this.#slots[slot] = word;
    }
  }
}

function isSame(bytes: Uint8Array, a: number, b: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (bytes[a + i] !== bytes[b + i]) return false;
  return true;
}

const hashed = (hash: number, byte: number): number => Math.imul(hash ^ byte, 0x01000193);

/** The low bits of such a hash hang on the last letters alone. */
const spread = (hash: number): number => hash ^ (hash >>> 15);

function doubled(values: Uint32Array): Uint32Array {
  const larger = new Uint32Array(values.length * 2);
  larger.set(values);
  return larger;
}
