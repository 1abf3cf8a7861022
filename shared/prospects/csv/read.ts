/** Parses the text of an uploaded CSV file as a stream, with bounded memory. */
import * as limits from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { CsvParser } from "#shared/prospects/csv/parse.ts";

export interface CsvRow {
  /**
   * Number of the row as in a spreadsheet, from 1. Blank lines count. Line breaks inside a cell and a first line such as `sep=;` do not.
   */
  readonly row: number;
  readonly cells: readonly string[];
}

const delimiters = [",", ";", "\t"] as const;

export interface Csv {
  readonly delimiter: string;
  /** The header row and all other rows except blank lines. Throws BadFile if a quoted cell or a row does not end. */
  readonly rows: AsyncGenerator<CsvRow>;
}

/** The first line of a file may tell Excel the delimiter. Excel then shows the next line as row 1. */
const separatorLine = /^"?sep=([,;\t])"?(?:\r\n|\n|\r|$)/i;

/** Detects the delimiter at the beginning of the text, and returns the rows as a stream. */
export async function openCsv(text: AsyncIterable<string>): Promise<Csv> {
  const pieces = text[Symbol.asyncIterator]();
  const beginning = await firstLine(pieces);
  const [line = "", separator] = separatorLine.exec(beginning) ?? [];
  const delimiter = separator ?? delimiterOf(beginning);
  return { delimiter, rows: filledRows(parsed(beginning.slice(line.length), pieces, delimiter)) };
}

async function* filledRows(rows: AsyncIterable<string[]>): AsyncGenerator<CsvRow> {
  let row = 0;
  let blank = 0;
  for await (const cells of rows) {
    row++;
    if (cells.length > 1 || cells[0]?.trim() !== "") yield { row, cells };
    else if (2 * ++blank - row > limits.csvBlankLines) {
      throw new BadFile(`The file has over ${limits.csvBlankLines} blank lines more than rows.`);
    }
  }
}

/** Throws BadFile if a row is too long, because the parser keeps a row in memory until it ends. */
async function* parsed(beginning: string, pieces: AsyncIterator<string>, delimiter: string): AsyncGenerator<string[]> {
  const parser = new CsvParser(delimiter);
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
