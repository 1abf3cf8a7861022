/** Reads the bytes of an uploaded CSV file into rows, as a stream. csv-parse knows the format; this file bounds its memory. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { TextDecoder } from "node:util";
import { CsvError, type Options, type Parser, parse } from "csv-parse";
import { limits } from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";

export interface CsvRow {
  /** Numbered as in a spreadsheet: from 1, with blank lines, without line breaks inside a cell. */
  readonly row: number;
  readonly cells: readonly string[];
}

type Encoding = "utf-8" | "utf-16le" | "utf-16be";

/** Larger chunks are cut, so that a reader of the text can stop early. */
const PIECE_BYTES = 64 * 1024;

/** Decodes UTF-8, or UTF-16 after a byte order mark, and drops the mark. Throws BadFile at the first invalid bytes. */
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

/** While there is `more`, the decoder keeps a character that the end of the chunk cuts. */
function decode(decoder: TextDecoder, encoding: Encoding, bytes: Uint8Array, more: boolean): string {
  try {
    return decoder.decode(bytes, { stream: more });
  } catch (error) {
    throw new BadFile(`The file is not text in ${encoding.toUpperCase()}.`, { cause: error });
  }
}

const delimiters = [",", ";", "\t"] as const;

const options: Options = {
  bom: false,
  // Rows of one file may end in different ways.
  record_delimiter: ["\r\n", "\n", "\r"],
  // The reader of a row reports a wrong number of cells.
  relax_column_count: true,
  // A quotation mark inside an unquoted cell (6" pipe) is text.
  relax_quotes: true,
};

/** Yields all rows but blank lines, the header first. Throws BadFile if a quoted cell or a row does not end. */
export async function* csvRows(text: AsyncIterable<string>): AsyncGenerator<CsvRow> {
  const pieces = text[Symbol.asyncIterator]();
  const beginning = await firstLine(pieces);
  const parser = acceptingAnyWidth(parse({ ...options, delimiter: delimiterOf(beginning) }));
  // A failure of the input destroys the parser, so the loop below throws it.
  const feeding = pipeline(Readable.from(bounded(beginning, pieces, parser), { objectMode: true }), parser);
  feeding.catch(() => undefined);
  let row = 0;
  let blank = 0;
  try {
    for await (const cells of recordsOf(parser)) {
      row++;
      if (cells.length > 1 || cells[0]?.trim() !== "") yield { row, cells };
      else if (2 * ++blank - row > limits.csvBlankLines) {
        throw new BadFile(`The file has over ${limits.csvBlankLines} blank lines more than rows.`);
      }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const message =
      error.code === "CSV_QUOTE_NOT_CLOSED"
        ? `The file ends inside a quoted cell of row ${parser.info.records + 1}.`
        : `Row ${parser.info.records + 1} is not CSV.`;
    throw new BadFile(message, { cause: error });
  }
}

/** The part of the parser's state that is the current row. */
interface ParserState {
  readonly record: readonly string[];
}

/**
 * csv-parse creates an error with a stack and a copy of the row for each row of another width than the first. Nothing here uses
 * these errors, and they make such rows, blank lines included, 20 times slower: a file of them would outlast the function. The
 * parser therefore expects the width that each row has.
 */
function acceptingAnyWidth(parser: Parser): Parser {
  const state: ParserState = Reflect.get(parser, "state");
  Object.defineProperty(state, "expectedRecordLength", { get: () => state.record.length, set: () => undefined });
  return parser;
}

/** Gives the parser's records their type: without the option `columns`, a record is its cells. */
async function* recordsOf(parser: Parser): AsyncGenerator<string[]> {
  for await (const record of parser) yield record;
}

/** Reads up to the end of the first line that is not blank, and to the end of the chunk that holds it. */
async function firstLine(pieces: AsyncIterator<string>): Promise<string> {
  let text = "";
  while (!text.trimStart().includes("\n") && text.length <= limits.csvRow) {
    const next = await pieces.next();
    if (next.done === true) break;
    text += next.value;
  }
  return text;
}

/** The most frequent delimiter outside quotes in the header. */
export function delimiterOf(text: string): string {
  const [header = ""] = text
    .trimStart()
    .replace(/"[^"]*"?/g, "")
    .split(/[\r\n]/, 1);
  const counts = delimiters.map((delimiter) => header.split(delimiter).length);
  return delimiters[counts.indexOf(Math.max(...counts))] ?? ",";
}

/** Throws BadFile for a row that is too long: the parser keeps a row in memory until it ends. */
async function* bounded(beginning: string, pieces: AsyncIterator<string>, parser: Parser): AsyncGenerator<string> {
  let records = 0;
  let pending = 0;
  for (let piece: string | undefined = beginning; piece !== undefined; ) {
    yield piece;
    if (parser.info.records === records) pending += piece.length;
    else pending = piece.length;
    records = parser.info.records;
    if (pending > limits.csvRow) {
      throw new BadFile(`Row ${records + 1} has more than ${limits.csvRow} characters, or its quotes do not end.`);
    }
    const next: IteratorResult<string> = await pieces.next();
    piece = next.done === true ? undefined : next.value;
  }
}
