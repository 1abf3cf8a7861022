/**
 * The format of exported and imported files: the columns, the header row with its mapping, and the protection of cells against formulas.
 */
import * as z from "zod/mini";
import { folded } from "#shared/caseless.ts";
import * as limits from "#shared/limits.ts";
import { text } from "#shared/schema.ts";

/** The reason why a whole file cannot be imported. */
export class BadFile extends Error {
  override readonly name = "BadFile";
}

/** The columns of an export, in the order of the file. */
export const exportColumns = [
  "id",
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
  "status",
  "assignedTo",
  "assignedToEmail",
  "tags",
  "notes",
  "createdBy",
  "source",
  "createdAt",
] as const;
export type Column = (typeof exportColumns)[number];

/** An import accepts these columns but ignores their cells, because it sets the id, the author and the time itself. */
const ignored: ReadonlySet<Column> = new Set<Column>(["id", "createdBy", "createdAt"]);

/** The columns whose cells an import reads. */
export const importColumns: readonly Column[] = exportColumns.filter((column) => !ignored.has(column));

/** Separates the tags of one cell. A tag's value cannot contain it. */
export const TAG_SEPARATOR = ";";

/** Maps a header of the file to a column. Null means that the import ignores the file's column. */
export const Mapping = z.record(text(limits.csvHeader), z.nullable(z.enum(exportColumns))).check(
  z.refine((mapping) => Object.keys(mapping).length <= limits.mappedColumns, {
    error: `must name at most ${limits.mappedColumns} columns`,
  }),
);
export type Mapping = z.infer<typeof Mapping>;

/** The JSON text of a mapping, as a query parameter. */
export const MappingText = z.pipe(
  z.pipe(
    z.string().check(z.maxLength(limits.queryParameter)),
    z.transform((value, context) => {
      try {
        return JSON.parse(value);
      } catch {
        context.issues.push({ code: "custom", message: "must be JSON", input: value });
        return z.NEVER;
      }
    }),
  ),
  Mapping,
);

/** The first row of an imported file. */
export interface Header {
  /** The number of cells that every row must have. */
  readonly width: number;
  /** The position of each known column in the file, counted from 0. */
  readonly positions: Readonly<Partial<Record<Column, number>>>;
}

/**
 * Reads the header and ignores unknown columns. Throws BadFile if no column is known, if a column occurs twice, or if a mapped header is
 * missing.
 */
export function readHeader(cells: readonly string[], mapping: Mapping = {}): Header {
  const mapped = new Map(Object.entries(mapping).map(([header, column]) => [folded(header), column]));
  const positions: Partial<Record<Column, number>> = {};
  for (const [position, cell] of cells.entries()) {
    const given = mapped.get(folded(cell));
    const column = given === undefined ? columnNamed(cell) : given;
    mapped.delete(folded(cell));
    if (column === undefined || column === null) continue;
    if (positions[column] !== undefined) throw new BadFile(`The header names the column ${column} twice.`);
    positions[column] = position;
  }
  const [missing] = mapped.keys();
  if (missing !== undefined) throw new BadFile(`The mapping names the header "${missing}", which the first row lacks.`);
  if (importColumns.every((column) => positions[column] === undefined)) {
    throw new BadFile(`The first row must name at least one of the columns ${importColumns.join(", ")}.`);
  }
  return { width: cells.length, positions };
}

/** Returns the column with this name. Ignores case and surrounding blanks. */
function columnNamed(header: string): Column | undefined {
  const name = header.trim().toLowerCase();
  return exportColumns.find((column) => column.toLowerCase() === name);
}

const beginsFormula = /^[=+\-@\t\r]/;
/**
 * Matches a guarded cell. Also matches a text that looks like a guarded cell, so that such a text gets another quote and survives the
 * import.
 */
const isGuarded = /^'+[=+\-@\t\r]/;
/**
 * Matches a plain number or phone number, which has at least one digit. Such a cell gets no guard, because a spreadsheet does not run it as
 * a formula and a guard would turn it into text.
 */
const isPlain = /^(?=.*\d)[\d +\-().]+$/;

/** Adds a quote before a cell that a spreadsheet would run as a formula. `unguarded` restores the exact text. */
export const guarded = (text: string): string =>
  (beginsFormula.test(text) && !isPlain.test(text)) || isGuarded.test(text) ? `'${text}` : text;

export const unguarded = (cell: string): string => (isGuarded.test(cell) ? cell.slice(1) : cell);

/** The description of the mapping. The query parameter uses the same description. */
export const MAPPING_TEXT =
  "header in the file -> column of the import, or null to ignore the column. Headers are compared without case.";
