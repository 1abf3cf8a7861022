/** The header row of an imported CSV file. */
import * as z from "zod/mini";
import { isBlank } from "#shared/blank.ts";
import { folded } from "#shared/caseless.ts";
import * as limits from "#shared/limits.ts";
import { BadFile, type Column, importColumns, knownColumns } from "#shared/prospects/csv/format.ts";
import { text } from "#shared/schema.ts";

/** The error message names the header, the last part of zod's path. */
const MappedColumn = z.enum(knownColumns, {
  error: ({ input, path }) =>
    `for the header "${String(path?.at(-1))}", there is no column ${JSON.stringify(input)?.slice(0, limits.csvHeader)}. The columns are ${knownColumns.join(", ")}.`,
});

/** Maps headers of the file to columns of the import. Null means that the import ignores the column with this header. */
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

/** A JavaScript object loses a property of this name. */
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
  "header in the file -> column of the import, or null to ignore the column. Headers are compared without case.";

/** A file without a value in one of these columns is probably not a list of prospects. */
const essential = [
  "name",
  "phone",
  "email",
  "lat",
  "lng",
  "address1",
  "address2",
  "city",
  "state",
  "zip",
] as const satisfies readonly Column[];

export interface Header {
  /** A row may have fewer cells, because spreadsheet programs leave out empty cells at its end. */
  readonly width: number;
  readonly positions: Readonly<Partial<Record<Column, number>>>;
  /** Headers of the columns that the import does not read, at most `limits.ignoredColumns`. Long headers are shortened. */
  readonly ignored: readonly string[];
  /** Columns without a header, from 0. A spreadsheet program saves every column that ever contained a value. */
  readonly unnamed: readonly number[];
  /** `1,5` is the number 1.5, unless the comma is the delimiter. */
  readonly hasDecimalComma: boolean;
}

interface Reading {
  readonly mapping?: Mapping | undefined;
  readonly delimiter?: string;
  /** The column by which rows are matched with existing prospects. The file must contain this column. */
  readonly keyColumn?: Column | undefined;
}

/** Throws BadFile if no column can be read, if one occurs twice, or if the key column or a header of the mapping is missing. */
export function readHeader(
  cells: readonly string[],
  { mapping = {}, delimiter = ",", keyColumn }: Reading = {},
): Header {
  const mapped = new Map(Object.entries(mapping).map(([header, column]) => [folded(header), { header, column }]));
  const positions: Partial<Record<Column, number>> = {};
  const ignored = new Set<string>();
  const unnamed: number[] = [];
  for (const [position, cell] of cells.entries()) {
    const given = mapped.get(folded(cell));
    const column = given === undefined ? columnNamed(cell) : given.column;
    mapped.delete(folded(cell));
    if (isBlank(cell)) unnamed.push(position);
    else if (
      (column == null || (!importColumns.includes(column) && column !== keyColumn)) &&
      ignored.size < limits.ignoredColumns
    ) {
      ignored.add(cell.trim().slice(0, limits.ignoredColumn));
    }
    if (column == null) continue;
    if (positions[column] !== undefined) throw new BadFile(`The header names the column ${column} twice.`);
    positions[column] = position;
  }
  const [missing] = mapped.values();
  if (missing !== undefined) {
    throw new BadFile(`The mapping names the header "${missing.header}", which the first row lacks.`);
  }
  if (importColumns.every((column) => positions[column] === undefined)) {
    throw new BadFile(`The first row must name at least one of the columns ${importColumns.join(", ")}.`);
  }
  if (keyColumn !== undefined && positions[keyColumn] === undefined) {
    throw new BadFile(`The first row must name the column ${keyColumn}, by which the rows are matched.`);
  }
  return { width: cells.length, positions, ignored: [...ignored], unnamed, hasDecimalComma: delimiter !== "," };
}

export const fillsUnnamed = (cells: readonly string[], { unnamed }: Header): boolean =>
  unnamed.some((position) => !isBlank(cells[position] ?? ""));

/** The values of such a row are probably in the wrong columns. */
export const isTooLong = (cells: readonly string[], { width }: Header): boolean =>
  cells.length > width && cells.slice(width).some((cell) => !isBlank(cell));

/** A row with more cells than the header counts too, because its values may be in the wrong columns. */
export const isFilled = (cells: readonly string[], header: Header): boolean =>
  isTooLong(cells, header) || essential.some((column) => !isBlank(cells[header.positions[column] ?? -1] ?? ""));

export const nothingFilled = (): BadFile =>
  new BadFile(
    `No row has a name, phone, e-mail, address or coordinates. The first row must name columns of the import: ${importColumns.join(", ")}.`,
  );

/** Returns the column with this name, without regard to case. */
export function columnNamed(header: string): Column | undefined {
  const name = header.trim().toLowerCase();
  return knownColumns.find((column) => column.toLowerCase() === name);
}
