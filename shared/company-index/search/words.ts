/**
 * The word index of a segment. It contains each distinct word of the texts, and the numbers of the texts that contain the word.
 *
 * Most stored words that occur in only one text are numbers or e-mail addresses, but most searched words consist of letters. A search would
 * be slow if it compared a searched word with all of them. Instead, it reads a second index with only the letter sequences of the words
 * that occur in one text. The second index is smaller, because there are few distinct letter sequences.
 */
import { byteAt, uint32At } from "#shared/at.ts";
import { groupedBy, numbersTo } from "#shared/company-index/search/grouped.ts";
import {
  areLetters,
  Grams,
  letterSpans,
  PARTS,
  type Patterns,
  type PlainTexts,
  pieceAt,
} from "#shared/company-index/search/plain-texts.ts";

export class Words {
  /** All words, each followed by a line break. The words that occur in several texts come first. */
  readonly #bytes: Buffer;
  /** The byte offset of each word, and the end of the last word. */
  readonly #starts: Uint32Array;
  readonly #texts: Uint16Array | Uint32Array;
  /**
   * For each word in several texts, the position of its first text in `#texts`. The last number is the position of all other words' texts.
   */
  readonly #textStarts: Uint32Array;
  readonly #grams: Grams;
  readonly #wordsOfPart: number;
  /** The letter sequences of the words that occur in only one text. Undefined in the second index itself. */
  readonly #spans: Words | undefined;

  constructor(texts: PlainTexts, areSpans = false) {
    const { bytes, starts } = texts;
    const count = starts.length - 1;
    const list = new WordList(bytes);
    for (let text = 0; text < count; text++) list.addText(uint32At(starts, text), uint32At(starts, text + 1), text);
    const { order, shared } = sharedFirst(bytes, list);
    this.#starts = startsOf(list, order);
    this.#bytes = bytesOf(bytes, order, list, this.#starts);
    const { pairs } = list;
    const rankOf = new Uint32Array(order.length);
    for (let rank = 0; rank < order.length; rank++) rankOf[uint32At(order, rank)] = rank;
    const rankAt = (pair: number): number => uint32At(rankOf, uint32At(pairs.words, pair));
    const textsOfWords = groupedBy(pairs.texts, order.length, rankAt);
    this.#textStarts = textsOfWords.starts.slice(0, shared + 1);
    this.#texts = count > 0x10000 ? textsOfWords.items : new Uint16Array(textsOfWords.items);
    this.#wordsOfPart = Math.max(1, Math.ceil(order.length / PARTS));
    const parts = Math.ceil(order.length / this.#wordsOfPart);
    const partStarts = Uint32Array.from({ length: parts + 1 }, (_, part) => this.#startOf(part * this.#wordsOfPart));
    this.#grams = new Grams(this.#bytes, partStarts);
    if (!areSpans) this.#spans = new Words(letterSpans(this.#bytes, this.#starts.subarray(shared)), true);
  }

  get byteLength(): number {
    const own = [this.#bytes, this.#starts, this.#texts, this.#textStarts, this.#grams, this.#spans];
    return own.reduce((sum, part) => sum + (part?.byteLength ?? 0), 0);
  }

  visitTextsWith(wanted: Buffer, visit: (text: number) => void): void {
    const bySpans = this.#spans !== undefined && areLetters(wanted);
    this.#visitWords(bySpans ? this.#shared : this.#starts.length - 1, wanted, visit);
    if (!bySpans) return;
    this.#spans?.visitTextsWith(wanted, (word) => this.#visitTexts(this.#shared + word, visit, 1));
  }

  /** Visits the texts that contain one of the searched words. It may visit a text several times, each time for other words. */
  visitTextsWithSome(patterns: Patterns, visit: (text: number, found: number) => void): void {
    patterns.visit(this.#bytes, this.#starts, (word, found) => this.#visitTexts(word, visit, found));
  }

  get #shared(): number {
    return this.#textStarts.length - 1;
  }

  #visitWords(size: number, wanted: Buffer, visit: (text: number) => void): void {
    const [low, high] = this.#grams.partsWith(wanted);
    if (low === 0 && high === 0) return;
    for (let part = 0; part < PARTS; part++) {
      if (!hasBit(low, high, part)) continue;
      const first = part;
      while (part + 1 < PARTS && hasBit(low, high, part + 1)) part++;
      const from = first * this.#wordsOfPart;
      if (from >= size) return;
      this.#visitBetween(from, Math.min(size, (part + 1) * this.#wordsOfPart), wanted, visit);
    }
  }

  #visitBetween(first: number, end: number, wanted: Buffer, visit: (text: number) => void): void {
    const from = this.#startOf(first);
    const bytes = this.#bytes.subarray(from, this.#startOf(end));
    let word = first;
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, this.#startOf(word + 1) - from)) {
      word = pieceAt(this.#starts, from + at, word, end);
      this.#visitTexts(word, visit, 1);
      if (word + 1 >= end) return;
    }
  }

  #visitTexts(word: number, visit: (text: number, found: number) => void, found: number): void {
    const shared = this.#shared;
    const isShared = word < shared;
    const from = isShared ? uint32At(this.#textStarts, word) : uint32At(this.#textStarts, shared) + word - shared;
    const end = isShared ? uint32At(this.#textStarts, word + 1) : from + 1;
    const texts = this.#texts;
    for (let i = from; i < end; i++) {
      const text = texts[i];
      if (text === undefined) throw new Error(`no text at position ${i} of a word index`);
      visit(text, found);
    }
  }

  #startOf(word: number): number {
    return uint32At(this.#starts, Math.min(word, this.#starts.length - 1));
  }
}

const hasBit = (low: number, high: number, part: number): boolean =>
  (((part < 32 ? low : high) >>> (part & 31)) & 1) === 1;

/** Number of bytes at the beginning of a word by which the words are sorted. */
const ORDERED = 3;

/**
 * Puts the words that occur in several texts first, and sorts all words by their first bytes. Similar words are then in the same part of
 * the trigram filter, so a search can skip more parts. For example, a part with only numbers contains no trigram of a name.
 */
function sharedFirst(text: Uint8Array, list: WordList): { order: Uint32Array; shared: number } {
  const counts = new Uint32Array(list.size);
  for (const word of list.pairs.words) counts[word] = uint32At(counts, word) + 1;
  let order = numbersTo(list.size);
  for (let at = ORDERED - 1; at >= 0; at--) {
    const words = order;
    order = groupedBy(words, 256, (i) => {
      const word = uint32At(words, i);
      return at < list.lengthOf(word) ? byteAt(text, list.fromOf(word) + at) : 0;
    }).items;
  }
  const { starts, items } = groupedBy(order, 2, (i) => (uint32At(counts, uint32At(order, i)) === 1 ? 1 : 0));
  return { order: items, shared: uint32At(starts, 1) };
}

function startsOf(list: WordList, order: Uint32Array): Uint32Array {
  const starts = new Uint32Array(order.length + 1);
  let end = 0;
  for (let i = 0; i < order.length; i++) {
    end += list.lengthOf(uint32At(order, i)) + 1;
    starts[i + 1] = end;
  }
  return starts;
}

function bytesOf(text: Buffer, order: Uint32Array, list: WordList, starts: Uint32Array): Buffer {
  const bytes = Buffer.alloc(uint32At(starts, order.length), "\n");
  for (let i = 0; i < order.length; i++) {
    const word = uint32At(order, i);
    const [from, start, length] = [list.fromOf(word), uint32At(starts, i), list.lengthOf(word)];
    for (let at = 0; at < length; at++) bytes[start + at] = byteAt(text, from + at);
  }
  return bytes;
}

const BLANK = 0x20;
const LINE_BREAK = 0x0a;
const FREE = 0xffffffff;
const NO_TEXT = 0xffffffff;

/** The distinct words, numbered in the order of their first occurrence, in a hash table with open addressing. */
class WordList {
  readonly #bytes: Uint8Array;
  /** The word number in each slot. At least half of the slots are free, to keep searches short. */
  #slots: Uint32Array;
  #size = 0;
  /** For each word: its byte offset (`#froms`), its length, and the number of the last text that contains it. */
  #froms: Uint32Array;
  #lengths: Uint32Array;
  #lastTexts: Uint32Array;
  /** The word `#pairWords[i]` occurs in the text `#pairTexts[i]`. There is one such pair for each text of a word. */
  #pairWords: Uint32Array;
  #pairTexts: Uint32Array;
  #pairs = 0;

  /** `bytes` must be UTF-8, and a space or a line break must follow each word. */
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

  addText(from: number, to: number, text: number): void {
    const bytes = this.#bytes;
    let first = from;
    let hash = 0;
    for (let at = from; at < to; at++) {
      const byte = byteAt(bytes, at);
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
    return uint32At(this.#froms, word);
  }

  lengthOf(word: number): number {
    return uint32At(this.#lengths, word);
  }

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
    for (let word = uint32At(slots, slot); word !== FREE; word = uint32At(slots, slot)) {
      if (lengths[word] === length && isSame(bytes, uint32At(froms, word), from, length)) return word;
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
      for (let at = from; at < from + this.lengthOf(word); at++) hash = hashed(hash, byteAt(this.#bytes, at));
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

/** Mixes high bits into the low bits, which select the slot. The multiplication in `hashed` does not do this. */
const spread = (hash: number): number => hash ^ (hash >>> 15);

function doubled(values: Uint32Array): Uint32Array {
  const larger = new Uint32Array(values.length * 2);
  larger.set(values);
  return larger;
}
