/**
 * The texts of a segment in memory. At first as they were stored, since a function that has just started is to answer soon; in
 * later searches by their words, which take a while to make and then less memory and hardly any time.
 */
import { PlainTexts } from "#shared/company-index/plain-texts.ts";
import type { TextColumns } from "#shared/company-index/segment.ts";
import { Words } from "#shared/company-index/words.ts";

/** Texts are numbered: a row's own one, then its notes, then the next row's. */
export class SegmentTexts {
  /** Of each text. */
  readonly rowOf: Uint16Array;
  /** Of each note. */
  readonly noteIds: Float64Array;
  readonly noteVersions: Float64Array;
  #texts: PlainTexts | Words;
  /** The digits of each row's phones: each phone is a word. */
  #digits: PlainTexts | Words;
  #isSearched = false;

  constructor({ bytes, starts, rowOf, noteIds, noteVersions, digits, digitStarts }: TextColumns) {
    this.rowOf = rowOf;
    const isNote = (_: number, text: number): boolean => noteIds[text] !== 0;
    this.noteIds = noteIds.filter(isNote);
    this.noteVersions = noteVersions.filter(isNote);
    this.#digits = new PlainTexts(digits, digitStarts);
    this.#texts = new PlainTexts(bytes, starts);
  }

  /** Numbers of the texts in which the word occurs, some of them several times. */
  visitTextsWith(word: Buffer, visit: (text: number) => void): void {
    this.#isSearched = true;
    this.#texts.visitTextsWith(word, visit);
  }

  /** Rows in whose phones the digits occur, some of them several times. */
  visitRowsWithDigits(digits: Buffer, visit: (row: number) => void): void {
    this.#digits.visitTextsWith(digits, visit);
  }

  /** -1: it is the row's own text. */
  noteOf(text: number): number {
    const row = this.rowOf[text] ?? 0;
    return text > 0 && this.rowOf[text - 1] === row ? text - row - 1 : -1;
  }

  /** Bytes of text that wait for their words to be made; none before the first search. */
  get waiting(): number {
    return this.#isSearched && this.#texts instanceof PlainTexts ? this.#texts.bytes.length : 0;
  }

  makeWords(): void {
    if (this.#texts instanceof PlainTexts) this.#texts = new Words(this.#texts);
    if (this.#digits instanceof PlainTexts) this.#digits = new Words(this.#digits);
  }

  get byteLength(): number {
    const own = [this.rowOf, this.noteIds, this.noteVersions, this.#digits, this.#texts];
    return own.reduce((sum, { byteLength }) => sum + byteLength + 100, 0);
  }
}
