/** Text of a CSV file -> its rows, while it is being read. csv-parse knows the format; what is bounded here is memory. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CsvError, type Options, type Parser, parse } from "csv-parse";
import { limits } from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/bad-file.ts";

export interface CsvRow {
  /** As a spreadsheet counts: the first is 1, blank lines count, line breaks within a cell do not. */
  readonly row: number;
  readonly cells: readonly string[];
}

const delimiters = [",", ";", "\t"] as const;

const options: Options = {
  bom: false,
  // Each row may end as it likes; a file of mixed ends is still a file.
  record_delimiter: ["\r\n", "\n", "\r"],
  // Whoever reads the rows knows which of them have too many cells or too few.
  relax_column_count: true,
  // A quotation mark in the middle of an unquoted cell (6" pipe) is text.
  relax_quotes: true,
};

/** All rows but blank lines, the header too. Throws BadFile where a cell's quotes do not end or a row does not. */
export async function* csvRows(text: AsyncIterable<string>): AsyncGenerator<CsvRow> {
  const pieces = text[Symbol.asyncIterator]();
  const beginning = await firstLine(pieces);
  const parser = ofAnyWidth(parse({ ...options, delimiter: delimiterOf(beginning) }));
  // Its failure destroys the parser, and so is thrown by the loop below.
  const feeding = pipeline(Readable.from(bounded(beginning, pieces, parser), { objectMode: true }), parser);
  feeding.catch(() => undefined);
  let row = 0;
  let blank = 0;
  try {
    for await (const cells of recordsOf(parser)) {
      row++;
      if (cells.length > 1 || cells[0]?.trim() !== "") yield { row, cells };
      else if (2 * ++blank - row > limits.csvBlankLines) {
        throw new BadFile(`The file has more than ${limits.csvBlankLines} blank lines beside one for each row.`);
      }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const message =
      error.code === "CSV_QUOTE_NOT_CLOSED"
        ? `The file ends within the quotes of a cell of row ${parser.info.records + 1}.`
        : `Row ${parser.info.records + 1} is not CSV.`;
    throw new BadFile(message, { cause: error });
  }
}

/** What the parser keeps of the row that it is at. */
interface ParserState {
  readonly record: readonly string[];
}

/**
 * For each row of another width than the first the parser makes an error, with a stack and a copy of the row, of which nothing is
 * used here: such rows, and blank lines are some, take 20 times as long, and a file of them takes a function more than its time.
 * So whatever width comes is what it expects.
 */
function ofAnyWidth(parser: Parser): Parser {
  const state: ParserState = Reflect.get(parser, "state");
  Object.defineProperty(state, "expectedRecordLength", { get: () => state.record.length, set: () => undefined });
  return parser;
}

/** Without columns to name them, a record is its cells. */
async function* recordsOf(parser: Parser): AsyncGenerator<string[]> {
  for await (const record of parser) yield record;
}

/** The text up to the end of its first line that is not blank, and what came along with it. */
async function firstLine(pieces: AsyncIterator<string>): Promise<string> {
  let text = "";
  while (!text.trimStart().includes("\n") && text.length <= limits.csvRow) {
    const next = await pieces.next();
    if (next.done === true) break;
    text += next.value;
  }
  return text;
}

/** The one that stands most often in the header outside of quotes. */
export function delimiterOf(text: string): string {
  const [header = ""] = text
    .trimStart()
    .replace(/"[^"]*"?/g, "")
    .split(/[\r\n]/, 1);
  const counts = delimiters.map((delimiter) => header.split(delimiter).length);
  return delimiters[counts.indexOf(Math.max(...counts))] ?? ",";
}

/** The parser keeps a row until it ends: so one that does not is found here, however many cells it has. */
async function* bounded(beginning: string, pieces: AsyncIterator<string>, parser: Parser): AsyncGenerator<string> {
  let records = 0;
  let waiting = 0;
  for (let piece: string | undefined = beginning; piece !== undefined; ) {
    yield piece;
    if (parser.info.records === records) waiting += piece.length;
    else waiting = piece.length;
    records = parser.info.records;
    if (waiting > limits.csvRow) {
      throw new BadFile(`Row ${records + 1} has more than ${limits.csvRow} characters, or its quotes do not end.`);
    }
    const next: IteratorResult<string> = await pieces.next();
    piece = next.done === true ? undefined : next.value;
  }
}
