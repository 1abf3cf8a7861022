/** What an import says about the columns of a file: which it has not read, and what they contain. */
import { at } from "#shared/at.ts";
import { isBlank } from "#shared/blank.ts";
import type { FileColumn } from "#shared/jobs/import/stored.ts";
import * as limits from "#shared/limits.ts";
import { type Bytes, decoded, type Encoding } from "#shared/prospects/csv/encoding.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { alternativesIn, type Header, shortened, textAt, titlesOf } from "#shared/prospects/csv/header.ts";
import { openCsv } from "#shared/prospects/csv/read.ts";

/** Finds the columns that no row has used although they have values, because another column for the same value came first. */
export class LostColumns {
  readonly #header: Header;
  readonly #groups: ReturnType<typeof alternativesIn>;
  readonly #used = new Set<number>();
  readonly #filled = new Set<number>();

  constructor(header: Header) {
    this.#header = header;
    this.#groups = alternativesIn(header);
  }

  get titles(): string[] {
    const lost = [...this.#filled].filter((position) => !this.#used.has(position));
    return lost.map((position) => shortened(at(this.#header.titles, position)));
  }

  meet(cells: readonly string[]): void {
    for (const alternatives of this.#groups) {
      const filled = alternatives
        .map((positions) => positions.filter((position) => !isBlank(textAt(cells, position))))
        .filter((positions) => positions.length > 0);
      for (const position of filled.flat()) this.#filled.add(position);
      for (const position of filled[0] ?? []) this.#used.add(position);
    }
  }
}

/** Rows in which samples are searched. */
const SAMPLED_ROWS = 1_000;

/** Neither a header nor a value has such characters. Some PDF files have only text in their first rows. */
const notText = /^%PDF-|[[\p{Cc}&&\p{ASCII}]--[\t-\r]]|\p{Cn}|\uFFFD/v;

function requireText(cells: readonly string[]): void {
  if (!cells.some((cell) => notText.test(cell))) return;
  throw new BadFile("The file is binary, such as a PDF or a picture, and not CSV. Save the table as CSV UTF-8.");
}

/**
 * Returns the columns that have a header, each with its first values, so that a user can choose a mapping. Throws BadFile if the file is not
 * text.
 */
export async function columnsOf(bytes: Bytes, encoding: Encoding): Promise<FileColumn[]> {
  const { rows } = await openCsv(decoded(bytes, encoding));
  const { value: first } = await rows.next();
  requireText(first?.cells ?? []);
  const columns = titlesOf(first?.cells ?? [])
    .map((title, position) => ({ position, header: title.slice(0, limits.csvHeader), samples: [] as string[] }))
    .filter(({ header }) => header !== "")
    .slice(0, limits.mappedColumns);
  let count = 0;
  for await (const { cells } of rows) {
    requireText(cells);
    for (const { position, samples } of columns) {
      const text = textAt(cells, position);
      if (samples.length < limits.columnSamples && !isBlank(text))
        samples.push(text.slice(0, limits.columnSample).toWellFormed());
    }
    if (++count === SAMPLED_ROWS) break;
  }
  return columns.map(({ header, samples }) => ({ header, samples }));
}

/** The headers, as the import names columns that it has not read. */
export const namesOf = (columns: readonly FileColumn[]): string[] => [
  ...new Set(columns.map(({ header }) => shortened(header))),
];
