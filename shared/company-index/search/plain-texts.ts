/** Finds texts that contain words. Also has the letter sequences and trigram filters with which a word index (words.ts) saves time. */
import { byteAt, uint32At } from "#shared/at.ts";

/** Texts in one buffer of UTF-8 bytes, each followed by a line break. */
export class PlainTexts {
  readonly bytes: Buffer;
  /** The byte offset of each text, and the end of the last text. */
  readonly starts: Uint32Array;

  constructor(bytes: Buffer, starts: Uint32Array) {
    this.bytes = bytes;
    this.starts = starts;
  }

  get byteLength(): number {
    return this.bytes.byteLength + this.starts.byteLength;
  }

  visitTextsWith(wanted: Buffer, visit: (text: number) => void): void {
    const { bytes, starts } = this;
    let text = 0;
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, starts[text + 1])) {
      text = pieceAt(starts, at, text, starts.length - 1);
      visit(text);
      if (uint32At(starts, text + 1) >= bytes.length) return;
    }
  }

  visitTextsWithSome(patterns: Patterns, visit: (text: number, found: number) => void): void {
    patterns.visit(this.bytes, this.starts, visit);
  }
}

export const WORDS_IN_MASK = 32;

/** Searches several words in one pass over the bytes. A text contains a word if it contains one of the word's patterns. */
export class Patterns {
  readonly #patterns: readonly (readonly Buffer[])[];
  /** For each pair of bytes, a bit mask of the words with a pattern that begins with this pair. */
  readonly #begun = new Uint32Array(0x10000);

  constructor(words: readonly (readonly string[])[]) {
    this.#patterns = words.map((patterns) => patterns.map((pattern) => Buffer.from(pattern)));
    for (const [word, patterns] of this.#patterns.entries()) {
      for (const [first = 0, second] of patterns) {
        const [from, to] = second === undefined ? [0, 0xff] : [second, second];
        for (let at = (first << 8) + from; at <= (first << 8) + to; at++) {
          this.#begun[at] = uint32At(this.#begun, at) | (1 << word);
        }
      }
    }
  }

  /** A piece is the bytes between two `starts`. Calls `visit` for each piece that contains words, with a bit mask of these words. */
  visit(bytes: Uint8Array, starts: Uint32Array, visit: (piece: number, found: number) => void): void {
    const begun = this.#begun;
    for (let piece = 0; piece + 1 < starts.length; piece++) {
      const last = uint32At(starts, piece + 1) - 1;
      let found = 0;
      let at = uint32At(starts, piece);
      let next = byteAt(bytes, at);
      while (at < last) {
        const pair = (next << 8) | byteAt(bytes, at + 1);
        next = pair & 0xff;
        const more = uint32At(begun, pair) & ~found;
        if (more !== 0) found |= this.#wordsAt(more, bytes, at);
        at++;
      }
      if (found !== 0) visit(piece, found);
    }
  }

  #wordsAt(words: number, bytes: Uint8Array, from: number): number {
    let found = 0;
    for (let left = words; left !== 0; left &= left - 1) {
      const word = 31 - Math.clz32(left & -left);
      if (this.#patterns[word]?.some((pattern) => isAt(bytes, from, pattern)) === true) found |= 1 << word;
    }
    return found;
  }
}

function isAt(bytes: Uint8Array, from: number, pattern: Uint8Array): boolean {
  for (let i = 0; i < pattern.length; i++) if (bytes[from + i] !== pattern[i]) return false;
  return true;
}

/** Returns the number of the piece (see `visit`) that contains the byte `at`. The number must be at least `from` and below `end`. */
export function pieceAt(starts: Uint32Array, at: number, from: number, end: number): number {
  let [low, high] = [from, end];
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (uint32At(starts, middle) <= at) low = middle;
    else high = middle;
  }
  return low;
}

const BLANK = 0x20;
const LINE_BREAK = 0x0a;

/** True for ASCII letters, and for all bytes of characters outside ASCII. */
const isLetter = (byte: number): boolean =>
  byte >= 0x80 || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);

/**
 * True if the searched word consists of letters. It can then match only inside one letter sequence of a text. The letter sequences of
 * `rita.cole@example.com` are `rita`, `cole`, `example` and `com`. There are far fewer distinct letter sequences than distinct words.
 */
export const areLetters = (wanted: Uint8Array): boolean => wanted.every(isLetter);

/** Replaces each word by its letter sequences, separated by spaces. `starts` are the byte offsets of the words and their end. */
export function letterSpans(bytes: Uint8Array, starts: Uint32Array): PlainTexts {
  const spans = Buffer.alloc(uint32At(starts, starts.length - 1) - uint32At(starts, 0));
  const spanStarts = new Uint32Array(starts.length);
  let end = 0;
  for (let word = 0; word + 1 < starts.length; word++) {
    const from = end;
    const last = uint32At(starts, word + 1) - 1;
    for (let at = uint32At(starts, word); at < last; at++) {
      const byte = byteAt(bytes, at);
      if (isLetter(byte)) spans[end++] = byte;
      else if (end > from && spans[end - 1] !== BLANK) spans[end++] = BLANK;
    }
    spans[end++] = LINE_BREAK;
    spanStarts[word + 1] = end;
  }
  return new PlainTexts(spans.subarray(0, end), spanStarts);
}

/** Number of groups, called parts, into which a trigram filter divides the words. A set of parts is a bit mask in two 32-bit numbers. */
export const PARTS = 64;
const GRAM = 3;

/** A trigram filter: it stores which sequences of three bytes each part contains. There are false positives, as in a Bloom filter. */
export class Grams {
  /** Two numbers for each bucket of trigrams: a bit for each of the 64 parts, set if the part contains a trigram of the bucket. */
  readonly #masks: Uint32Array;
  readonly #buckets: number;

  /** @param starts the byte offset of each part, and then the end of the last part */
  constructor(bytes: Uint8Array, starts: Uint32Array) {
    // One bucket for each byte of a part is enough, because a part has about as many distinct trigrams as bytes.
    this.#buckets = 2 ** Math.max(6, Math.ceil(Math.log2(bytes.length / PARTS + 1)));
    this.#masks = new Uint32Array(2 * this.#buckets);
    for (let part = 0; part + 1 < starts.length; part++)
      this.#add(bytes.subarray(uint32At(starts, part), uint32At(starts, part + 1)), part);
  }

  get byteLength(): number {
    return this.#masks.byteLength;
  }

  #add(bytes: Uint8Array, part: number): void {
    const masks = this.#masks;
    const half = part >>> 5;
    const bit = 1 << (part & 31);
    const last = this.#buckets - 1;
    let gram = 0;
    for (let at = 0; at < bytes.length; at++) {
      gram = ((gram << 8) | byteAt(bytes, at)) & 0xffffff;
      if (at < GRAM - 1) continue;
      const slot = 2 * (bucketOf(gram) & last) + half;
      masks[slot] = uint32At(masks, slot) | bit;
    }
  }

  /** Returns the set of parts (`PARTS`) that may contain the word: all parts if the word has fewer than three bytes, and so no trigram. */
  partsWith(word: Uint8Array): [low: number, high: number] {
    const last = this.#buckets - 1;
    let low = -1;
    let high = -1;
    let gram = 0;
    for (let at = 0; at < word.length; at++) {
      gram = ((gram << 8) | byteAt(word, at)) & 0xffffff;
      if (at < GRAM - 1) continue;
      const slot = 2 * (bucketOf(gram) & last);
      low &= uint32At(this.#masks, slot);
      high &= uint32At(this.#masks, slot + 1);
      if (low === 0 && high === 0) break;
    }
    return [low, high];
  }
}

const bucketOf = (gram: number): number => Math.imul(gram, 0x9e3779b1) >>> 12;
