/** Parses an uploaded CSV file as a stream, with bounded memory. */
import { TextDecoder } from "node:util";
import * as limits from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { CsvParser } from "#shared/prospects/csv/parse.ts";

export interface CsvRow {
  /** Number of the row as in a spreadsheet, from 1. It counts blank lines but not line breaks inside a cell. */
  readonly row: number;
  readonly cells: readonly string[];
}

type Encoding = "utf-8" | "utf-16le" | "utf-16be";

/** Maximum number of bytes that are decoded at once, so that a consumer of the text can stop early. */
const PIECE_BYTES = 64 * 1024;

/** Decodes UTF-8, or UTF-16 after a byte order mark, and drops the mark. Throws BadFile for an invalid byte sequence. */
export async function* decoded(bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined;
  let first: Uint8Array = new Uint8Array();
  let encoding: Encoding = "utf-8";
  for await (const chunk of bytes) {
    let piece = chunk;
    if (decoder === undefined) {
      piece = Buffer.concat([first, chunk]);
      first = piece;
      if (first.length < 2) continue;
      encoding = encodingOf(first);
      decoder = new TextDecoder(encoding, { fatal: true });
    }
    for (let at = 0; at < piece.length; at += PIECE_BYTES) {
      yield decode(decoder, encoding, piece.subarray(at, at + PIECE_BYTES), true);
    }
  }
  decoder ??= new TextDecoder(encoding, { fatal: true });
  yield decode(decoder, encoding, first.length < 2 ? first : new Uint8Array(), false);
}

function encodingOf([one, two]: Uint8Array): Encoding {
  if (one === 0xff && two === 0xfe) return "utf-16le";
  return one === 0xfe && two === 0xff ? "utf-16be" : "utf-8";
}

/** If `more` is true, an incomplete character at the end is kept for the next call. */
function decode(decoder: TextDecoder, encoding: Encoding, bytes: Uint8Array, more: boolean): string {
  try {
    return decoder.decode(bytes, { stream: more });
  } catch (error) {
    throw new BadFile(`The file is not text in ${encoding.toUpperCase()}.`, { cause: error });
  }
}

const delimiters = [",", ";", "\t"] as const;

/** Yields the header and all other rows except blank lines. Throws BadFile if a quoted cell or a row does not end. */
export async function* csvRows(text: AsyncIterable<string>): AsyncGenerator<CsvRow> {
  let row = 0;
  let blank = 0;
  for await (const cells of parsed(text)) {
    row++;
    if (cells.length > 1 || cells[0]?.trim() !== "") yield { row, cells };
    else if (2 * ++blank - row > limits.csvBlankLines) {
      throw new BadFile(`The file has over ${limits.csvBlankLines} blank lines more than rows.`);
    }
  }
}

/** Throws BadFile if a row is too long, because the parser keeps a row in memory until it ends. */
async function* parsed(text: AsyncIterable<string>): AsyncGenerator<string[]> {
  const pieces = text[Symbol.asyncIterator]();
  const beginning = await firstLine(pieces);
  const parser = new CsvParser(delimiterOf(beginning));
  let row = 1;
  let pending = 0;
  for (let piece: string | undefined = beginning; piece !== undefined; ) {
    pending += piece.length;
    for (const cells of parser.push(piece)) {
      yield cells;
      row++;
      pending = piece.length;
    }
    if (pending > limits.csvRow) {
      throw new BadFile(`Row ${row} has more than ${limits.csvRow} characters, or its quotes do not end.`);
    }
    const next: IteratorResult<string> = await pieces.next();
    piece = next.done === true ? undefined : next.value;
  }
  if (parser.isInQuotes) throw new BadFile(`The file ends inside a quoted cell of row ${row}.`);
  const last = parser.end();
  if (last !== undefined) yield last;
}

/** Returns the beginning of the file, up to the chunk in which the first line that is not blank ends. The delimiter is detected in it. */
async function firstLine(pieces: AsyncIterator<string>): Promise<string> {
  let text = "";
  while (!text.trimStart().includes("\n") && text.length <= limits.csvRow) {
    const next = await pieces.next();
    if (next.done === true) break;
    text += next.value;
  }
  return text;
}

/** Returns the most frequent delimiter in the header, outside quotes. */
export function delimiterOf(text: string): string {
  const [header = ""] = text
    .trimStart()
    .replace(/"[^"]*"?/g, "")
    .split(/[\r\n]/, 1);
  const counts = delimiters.map((delimiter) => header.split(delimiter).length);
  return delimiters[counts.indexOf(Math.max(...counts))] ?? ",";
}
