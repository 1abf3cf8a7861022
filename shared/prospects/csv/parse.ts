/** Parses CSV text that arrives in pieces. Rows may have any width and any line ending: CRLF, LF or CR. */

const MARK = '"';
const LINE_FEED = 10;
const RETURN = 13;

/** `mark` means that the previous character was a quotation mark in a quoted cell. It either ends the cell or escapes another mark. */
type Place = "before a cell" | "unquoted" | "quoted" | "mark" | "after CR";

/**
 * The parser is a state machine that keeps its state between pieces, so it reads each character once. A quotation mark inside an unquoted
 * cell is text, for example in `6" pipe`. A quoted cell that continues after its closing mark is unquoted, and both marks are text.
 */
export class CsvParser {
  readonly #delimiter: number;
  #place: Place = "before a cell";
  #cell = "";
  #cells: string[] = [];

  constructor(delimiter: string) {
    this.#delimiter = delimiter.charCodeAt(0);
  }

  get isInQuotes(): boolean {
    return this.#place === "quoted";
  }

  *push(piece: string): Generator<string[], void, undefined> {
    for (let at = 0; at < piece.length; ) {
      if (this.#place === "quoted") at = this.#readQuoted(piece, at);
      else if (this.#place === "mark") at = this.#readAfterMark(piece, at);
      else if (this.#place === "after CR") {
        this.#place = "before a cell";
        if (piece.charCodeAt(at) === LINE_FEED) at++;
      } else if (this.#place === "before a cell" && piece[at] === MARK) {
        this.#place = "quoted";
        at++;
      } else {
        at = this.#readUnquoted(piece, at);
        if (this.#place !== "unquoted" && piece.charCodeAt(at - 1) !== this.#delimiter) yield this.#takeRow();
      }
    }
  }

  /** Returns the last row if no line ending follows it. Call this once, after the last piece. */
  end(): string[] | undefined {
    const isEmpty = this.#cells.length === 0 && (this.#place === "before a cell" || this.#place === "after CR");
    if (isEmpty) return undefined;
    this.#cells.push(this.#cell);
    return this.#takeRow();
  }

  #readQuoted(piece: string, from: number): number {
    const mark = piece.indexOf(MARK, from);
    const end = mark < 0 ? piece.length : mark;
    this.#cell += piece.slice(from, end);
    if (mark >= 0) this.#place = "mark";
    return end + 1;
  }

  #readAfterMark(piece: string, at: number): number {
    const isEscape = piece[at] === MARK;
    this.#place = isEscape ? "quoted" : "unquoted";
    if (isEscape) this.#cell += MARK;
    else if (!this.#endsCell(piece.charCodeAt(at))) this.#cell = MARK + this.#cell + MARK;
    return isEscape ? at + 1 : at;
  }

  /** Reads up to the end of the cell or of the piece. */
  #readUnquoted(piece: string, from: number): number {
    let end = from;
    while (end < piece.length && !this.#endsCell(piece.charCodeAt(end))) end++;
    this.#cell += piece.slice(from, end);
    this.#place = "unquoted";
    if (end === piece.length) return end;
    this.#cells.push(this.#cell);
    this.#cell = "";
    this.#place = piece.charCodeAt(end) === RETURN ? "after CR" : "before a cell";
    return end + 1;
  }

  #endsCell(character: number): boolean {
    return character === this.#delimiter || character === LINE_FEED || character === RETURN;
  }

  #takeRow(): string[] {
    const cells = this.#cells;
    this.#cells = [];
    return cells;
  }
}
