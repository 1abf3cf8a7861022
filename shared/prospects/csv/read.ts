/** Parses the text of a CSV file as a stream, with limited memory. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CsvError, type Options, type Parser, parse } from "csv-parse";
import { isBlank } from "#shared/blank.ts";
import * as limits from "#shared/limits.ts";
import type { FileText } from "#shared/prospects/csv/encoding.ts";
import { BadFile, beginningOf } from "#shared/prospects/csv/format.ts";

export interface CsvRow {
  /** The number that a spreadsheet shows, from 1. Blank rows count, but not a first line such as `sep=;`. */
  readonly row: number;
  readonly cells: readonly string[];
}

/** `rows` yields the header and all rows that are not blank, and throws BadFile for a fault of the whole file. */
export async function openCsv(text: FileText): Promise<{ delimiter: string; rows: AsyncGenerator<CsvRow> }> {
  const pieces = text[Symbol.asyncIterator]();
  const { delimiter, rest } = beginningOf(await firstLine(pieces));
  return { delimiter, rows: validRows(text, filledRows(parsed(rest, pieces, delimiter))) };
}

const REPLACEMENT = "\uFFFD";

async function* validRows(text: FileText, rows: AsyncIterable<CsvRow>): AsyncGenerator<CsvRow> {
  let header: readonly string[] | undefined;
  let replacements = 0;
  for await (const read of rows) {
    header ??= read.cells;
    for (const [position, cell] of read.cells.entries()) {
      if (!cell.includes(REPLACEMENT)) continue;
      replacements += cell.split(REPLACEMENT).length - 1;
      // The decoder is ahead of the parser, so it has already counted the bytes of this cell.
      if (replacements > (text.validReplacements ?? Number.POSITIVE_INFINITY)) {
        throw invalidByte(read.row, header[position], position);
      }
    }
    yield read;
  }
}

function invalidByte(row: number, header = "", position: number): BadFile {
  const column = isBlank(header)
    ? `column ${position + 1}`
    : `the column "${header.trim().slice(0, limits.ignoredColumn)}"`;
  return new BadFile(`Row ${row} has a byte in ${column} that is not valid in UTF-8. Save the file as CSV UTF-8.`);
}

/** Leaves out blank rows. A spreadsheet program writes lines with only separators for rows whose values were deleted. */
async function* filledRows(rows: AsyncIterable<string[]>): AsyncGenerator<CsvRow> {
  let row = 0;
  let blank = 0;
  for await (const cells of rows) {
    row++;
    if (cells.some((cell) => !isBlank(cell))) yield { row, cells };
    else if (2 * ++blank - row > limits.csvBlankLines) {
      throw new BadFile(`The file has over ${limits.csvBlankLines} blank rows more than rows with a value.`);
    }
  }
}

const options: Options = {
  bom: false,
  // The rows of one file may have different line endings.
  record_delimiter: ["\r\n", "\n", "\r"],
  // Spreadsheet programs leave out empty cells at the end of a row. `draftOf` reports rows with too many cells.
  relax_column_count: true,
  // A quotation mark inside an unquoted cell is text, for example in `6" pipe`.
  relax_quotes: true,
};

async function* parsed(beginning: string, pieces: AsyncIterator<string>, delimiter: string): AsyncGenerator<string[]> {
  const parser = acceptingAnyWidth(parse({ ...options, delimiter }));
  // If the source of the text throws, `pipeline` also destroys the parser with that error. The loop below then throws the error.
  const feeding = pipeline(Readable.from(bounded(beginning, pieces, parser), { objectMode: true }), parser);
  feeding.catch(() => undefined);
  try {
    for await (const cells of parser) yield cells;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const row = parser.info.records + 1;
    const message =
      error.code === "CSV_QUOTE_NOT_CLOSED"
        ? `The file ends inside a quoted cell of row ${row}.`
        : `Row ${row} is not CSV.`;
    throw new BadFile(message, { cause: error });
  }
}

/**
 * Makes the parser expect the width that each row has. Even with `relax_column_count`, csv-parse creates an error with a stack for each row
 * of another width. A file full of such rows would take 20 times as long, and time out.
 */
function acceptingAnyWidth(parser: Parser): Parser {
  const state: { readonly record: readonly string[] } = Reflect.get(parser, "state");
  Object.defineProperty(state, "expectedRecordLength", { get: () => state.record.length, set: () => undefined });
  return parser;
}

/** The parser keeps a row in memory until the row ends, so a row that is too long is refused. */
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

/** Returns the beginning of the file, at least to the end of the first line with text. */
async function firstLine(pieces: AsyncIterator<string>): Promise<string> {
  let text = "";
  while (!text.trimStart().includes("\n") && text.length <= limits.csvRow) {
    const next = await pieces.next();
    if (next.done === true) break;
    text += next.value;
  }
  return text;
}
