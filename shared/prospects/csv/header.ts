/** The header row of an imported CSV file, and the synonyms that an import reads as names of columns. */
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { isBlank } from "#shared/blank.ts";
import { folded } from "#shared/caseless.ts";
import * as limits from "#shared/limits.ts";
import {
  addressColumns,
  BadFile,
  type Column,
  importColumns,
  knownColumns,
  textOf,
} from "#shared/prospects/csv/format.ts";
import { text } from "#shared/schema.ts";

export type Field = Column | "firstName" | "lastName";

/**
 * `Owner` is no synonym of `assignedTo`, because it means the owner of the home. Tags and notes have no synonyms: a row must not fail by a
 * synonym, and a new tag or note may exceed a limit.
 */
export const synonyms: readonly (readonly [Field, readonly string[]])[] = [
  ["name", ["Full Name", "Contact Name", "Customer Name", "Lead Name", "Prospect Name"]],
  ["firstName", ["First Name", "Given Name"]],
  ["lastName", ["Last Name", "Family Name", "Surname"]],
  ["phone", ["Phone Number", "Primary Phone", "Main Phone", "Home Phone", "Telephone", "Telephone Number"]],
  ["secondaryPhoneNumber", ["Secondary Phone Number", "Secondary Phone", "Alternate Phone", "Other Phone", "Phone 2"]],
  ["email", ["E-mail", "Email Address", "E-mail Address"]],
  ["lat", ["Latitude"]],
  ["lng", ["Longitude", "Long", "Lon"]],
  ["address1", ["Street", "Street Address", "Address", "Address 1", "Address Line 1"]],
  ["address2", ["Address 2", "Address Line 2", "Apartment", "Apt", "Suite", "Unit"]],
  ["city", ["Town"]],
  ["state", ["Province", "State/Province"]],
  ["zip", ["Zip Code", "Postal Code", "Postcode", "Zip/Postal Code"]],
  ["status", ["Lead Status", "Prospect Status", "Current Status"]],
  ["assignedTo", ["Assigned To", "Assignee", "Sales Rep", "Sales Representative", "Rep"]],
  ["assignedToEmail", ["Assigned To Email", "Assignee Email", "Sales Rep Email", "Rep Email"]],
  ["source", ["Lead Source"]],
  ["sourceId", ["Source ID", "External ID"]],
];

/** These headers mean `secondaryPhoneNumber` in a file that has a column for `phone`, and otherwise `phone`. */
export const mobileHeaders = ["Mobile", "Mobile Phone", "Mobile Number", "Cell", "Cell Phone", "Cell Number"];

/** Headers are compared by their letters and digits, so `zip_code` and `ZipCode` are `Zip Code`. */
const lettersOf = (header: string): string => folded(header).replace(/[^\p{L}\p{N}]/gu, "");

const fieldsBySynonym = new Map<string, Field | "mobile">([
  ...synonyms.flatMap(([field, headers]) => headers.map((header) => [lettersOf(header), field] as const)),
  ...mobileHeaders.map((header) => [lettersOf(header), "mobile"] as const),
]);

export const synonymOf = (header: string): Field | "mobile" | undefined => fieldsBySynonym.get(lettersOf(header));

/** A column of the import. The error names the header that has the wrong column: it is the last part of zod's path. */
const MappedColumn = z.enum(knownColumns, {
  error: ({ input, path }) =>
    `for the header "${String(path?.at(-1))}", there is no column ${JSON.stringify(input)?.slice(0, limits.csvHeader)}. The columns are ${knownColumns.join(", ")}.`,
});

/** Maps headers of the file to columns of the import. The import ignores a header with null. */
export const Mapping = z.record(text(limits.csvHeader), z.nullable(MappedColumn)).check(
  z.refine((mapping) => Object.keys(mapping).length <= limits.mappedColumns, {
    error: `must name at most ${limits.mappedColumns} columns`,
    abort: true,
  }),
  ({ value: mapping, issues }) => {
    const known = new Map<string, string>();
    for (const header of Object.keys(mapping)) {
      const same = known.get(folded(header));
      known.set(folded(header), header);
      if (same === undefined) continue;
      const message = `must not have both ${JSON.stringify(same)} and ${JSON.stringify(header)}, because headers are compared without case`;
      issues.push({ code: "custom", input: mapping, message });
    }
  },
);
export type Mapping = z.infer<typeof Mapping>;

/** No mapping can name this header, because a JavaScript object loses such a property. */
export const UNMAPPABLE = "__proto__";

export const MappingText = z.pipe(
  z.pipe(
    z.string().check(z.maxLength(limits.queryParameter)),
    z.transform((value, context) => {
      let message = "must be JSON";
      try {
        return JSON.parse(value, (key, item) => {
          if (key !== UNMAPPABLE) return item;
          message = `must not name the header ${UNMAPPABLE}`;
          throw new TypeError(message);
        });
      } catch {
        context.issues.push({ code: "custom", message, input: value });
        return z.NEVER;
      }
    }),
  ),
  Mapping,
);

export const MAPPING_TEXT =
  "header in the file -> column of the import, or null to ignore the column. Headers are compared without case. The second header `City` is `City (2)`.";

/** A file that has no value in any of these columns is probably not a list of prospects. */
const essential: readonly Column[] = ["name", "phone", "email", "lat", "lng", ...addressColumns];

export interface Header {
  /** Number of cells. A row may have fewer, because spreadsheet programs leave out empty cells at its end. */
  readonly width: number;
  /** The headers without outer blanks. The second header `City` is `City (2)`. */
  readonly titles: readonly string[];
  /** For each field, the positions of its headers. In a row, the first cell with a value at these positions counts. */
  readonly positions: Positions;
  /** Columns whose headers are synonyms. A faulty value in such a column is left empty. */
  readonly lenient: ReadonlySet<Field>;
  /** Headers that the import does not read, at most `limits.ignoredColumns`. */
  readonly ignored: readonly string[];
  /** The positions of columns without a header, counted from 0. */
  readonly unnamed: readonly number[];
  /** True if `1,5` is the number 1.5. In a file with the comma as delimiter, it is not. */
  readonly hasDecimalComma: boolean;
}

type Positions = Readonly<Partial<Record<Field, readonly number[]>>>;

interface Reading {
  readonly mapping?: Mapping | undefined;
  readonly delimiter?: string;
  /** The column by which rows are matched with existing prospects. */
  readonly keyColumn?: Column | undefined;
}

export class UnknownHeader extends BadFile {}

/** Throws BadFile if the mapping names a column twice, or if the key column or a header of the mapping is missing. */
export function readHeader(
  cells: readonly string[],
  { mapping = {}, delimiter = ",", keyColumn }: Reading = {},
): Header {
  const titles = titlesOf(cells);
  const { exact, mapped } = exactColumns(cells, titles, mapping);
  const synonymous = synonymsIn(cells, exact, mapped);
  const positions: Positions = { ...synonymous, ...exact };
  if ([...importColumns, "firstName" as const, "lastName" as const].every((field) => positions[field] === undefined)) {
    throw new UnknownHeader(`The first row must name at least one of the columns ${importColumns.join(", ")}.`);
  }
  if (keyColumn !== undefined && positions[keyColumn] === undefined) {
    throw new BadFile(`The first row must name the column ${keyColumn}, by which the rows are matched.`);
  }
  const lenient = new Set(fieldsOf(synonymous).map((field) => (isPartOfName(field) ? "name" : field)));
  if (keyColumn !== undefined) lenient.delete(keyColumn);
  const isRead = (field: Field) => isPartOfName(field) || importColumns.includes(field) || field === keyColumn;
  const read = new Set(
    fieldsOf(positions)
      .filter(isRead)
      .flatMap((field) => positions[field] ?? []),
  );
  const unread = titles.filter((title, position) => title !== "" && !read.has(position)).map(shortened);
  return {
    width: cells.length,
    titles,
    positions,
    lenient,
    ignored: [...new Set(unread)].slice(0, limits.ignoredColumns),
    unnamed: titles.flatMap((title, position) => (title === "" ? [position] : [])),
    hasDecimalComma: delimiter !== ",",
  };
}

export const shortened = (title: string): string => title.slice(0, limits.ignoredColumn);

const isPartOfName = (field: Field): field is "firstName" | "lastName" => field === "firstName" || field === "lastName";

export function titlesOf(cells: readonly string[]): string[] {
  const taken = new Set(cells.map(folded));
  const counts = new Map<string, number>();
  return cells.map((cell) => {
    const title = isBlank(cell) ? "" : cell.trim();
    let count = (counts.get(folded(title)) ?? 0) + 1;
    if (title === "" || count === 1) {
      counts.set(folded(title), 1);
      return title;
    }
    while (taken.has(folded(`${title} (${count})`))) count++;
    counts.set(folded(title), count);
    return `${title} (${count})`;
  });
}

/** Finds columns by the mapping and by exact headers. The mapping has precedence over a header, and the first of equal headers counts. */
function exactColumns(cells: readonly string[], titles: readonly string[], mapping: Mapping) {
  const missing = new Map(Object.entries(mapping).map(([header, column]) => [folded(header), { header, column }]));
  const exact: Partial<Record<Column, readonly number[]>> = {};
  const mapped = new Set<number>();
  for (const [position, title] of titles.entries()) {
    const given = missing.get(folded(title));
    if (given === undefined) continue;
    mapped.add(position);
    missing.delete(folded(title));
    if (given.column === null) continue;
    const [other] = exact[given.column] ?? [];
    if (other !== undefined) {
      const headers = `"${shortened(at(titles, other))}" and "${shortened(title)}"`;
      throw new BadFile(`The mapping gives two headers to the column ${given.column}: ${headers}. Map one of them.`);
    }
    exact[given.column] = [position];
  }
  for (const { header } of missing.values()) {
    throw new BadFile(`The mapping names the header "${header}", which the first row lacks.`);
  }
  for (const [position, cell] of cells.entries()) {
    const column = mapped.has(position) ? undefined : columnNamed(cell);
    if (column !== undefined) exact[column] ??= [position];
  }
  return { exact, mapped };
}

/** Leaves out synonyms of columns that have an exact header. */
function synonymsIn(cells: readonly string[], exact: Positions, mapped: ReadonlySet<number>): Positions {
  const found: Partial<Record<Field, number[]>> = {};
  const mobile: number[] = [];
  for (const [position, cell] of cells.entries()) {
    const field = mapped.has(position) || columnNamed(cell) !== undefined ? undefined : synonymOf(cell);
    if (field === "mobile") mobile.push(position);
    else if (field !== undefined && winnersOver(field).every((winner) => exact[winner] === undefined)) {
      found[field] = [...(found[field] ?? []), position];
    }
  }
  const field = (exact.phone ?? found.phone) === undefined ? "phone" : "secondaryPhoneNumber";
  if (mobile.length > 0 && exact[field] === undefined) found[field] = [...(found[field] ?? []), ...mobile];
  return found;
}

/** The columns whose exact headers have precedence over a synonym of the field. */
function winnersOver(field: Field): readonly Field[] {
  if (isPartOfName(field)) return ["name"];
  // Both columns name the assignee, so an exact header of either one has precedence.
  return field === "assignedToEmail" ? ["assignedTo", "assignedToEmail"] : [field];
}

const fieldsOf = (positions: Positions): Field[] => fields.filter((field) => positions[field] !== undefined);
const fields: readonly Field[] = [...knownColumns, "firstName", "lastName"];

const cellAt = (cells: readonly string[], position: number): string => cells[position] ?? "";
export const textAt = (cells: readonly string[], position: number): string => textOf(cellAt(cells, position));

export const fillsUnnamed = (cells: readonly string[], { unnamed }: Header): boolean =>
  unnamed.some((position) => !isBlank(cellAt(cells, position)));

/** True if a row has values beyond the last header. Its values are then probably in the wrong columns. */
export const isTooLong = (cells: readonly string[], { width }: Header): boolean =>
  cells.length > width && cells.slice(width).some((cell) => !isBlank(cell));

/** Returns groups of columns of which only the first with a value counts: synonyms, or headers of the whole name and of its parts. */
function alternativesIn({ positions }: Header): readonly (readonly (readonly number[])[])[] {
  const parts = [...(positions.firstName ?? []), ...(positions.lastName ?? [])];
  return fieldsOf(positions)
    .filter((field) => !isPartOfName(field))
    .map((field) => [
      ...(positions[field] ?? []).map((position) => [position]),
      ...(field === "name" && parts.length > 0 ? [parts] : []),
    ])
    .filter((alternatives) => alternatives.length > 1);
}

/** Finds columns whose values the import has never used, because each row also had a value in an earlier column of the same field. */
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

/** Returns a function that reads a cell by its column. It returns `""` for a blank cell, a missing column and a missing cell. */
export const cellsOf =
  (cells: readonly string[], { positions }: Header): Cell =>
  (column) => {
    const value = firstValue(cells, positions[column]);
    if (column !== "name" || value !== "") return value;
    const parts = [firstValue(cells, positions.firstName), firstValue(cells, positions.lastName)];
    return parts
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .join(" ");
  };
export type Cell = (column: Column) => string;

function firstValue(cells: readonly string[], positions: readonly number[] = []): string {
  for (const position of positions) {
    const value = textAt(cells, position);
    if (!isBlank(value)) return value;
  }
  return "";
}

/** True if a row has a value by which it can be a prospect, or values beyond the last header, which may be in the wrong columns. */
export function isFilled(cells: readonly string[], header: Header): boolean {
  const cell = cellsOf(cells, header);
  return isTooLong(cells, header) || essential.some((column) => cell(column) !== "");
}

export const nothingFilled = (): BadFile =>
  new BadFile(
    `No row has a name, phone, e-mail, address or coordinates. The first row must name columns of the import: ${importColumns.join(", ")}.`,
  );

export function columnNamed(header: string): Column | undefined {
  const name = header.trim().toLowerCase();
  return knownColumns.find((column) => column.toLowerCase() === name);
}
