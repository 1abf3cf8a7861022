/** The format of exported and imported CSV files: columns, and protection against formulas. */

/** The whole file cannot be imported, for the reason in the message. */
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

/** All columns that an import may contain. `sourceId` is not a column of exports, because the columns of exports must not change. */
export const knownColumns = [...exportColumns, "sourceId"] as const;
export type Column = (typeof knownColumns)[number];

/** Separates the tags in one cell. A tag cannot contain this character. */
export const TAG_SEPARATOR = ";";

const beginsFormula = /^[=+\-@\t\r]/;
/**
 * Matches a cell that begins with a guard (a quote before a formula). A client's own text may look the same. `guarded` therefore puts
 * another quote before such a text, so that an import restores it exactly.
 */
const isGuarded = /^'+[=+\-@\t\r]/;
/**
 * Matches a plain number or phone number. It needs no guard, because a spreadsheet does not run it as a formula. A guard would turn a
 * number into text.
 */
const isPlain = /^(?=.*\d)[\d +\-().]+$/;

/** Adds a quote before a cell that a spreadsheet would run as a formula. `unguarded` restores the exact text. */
export const guarded = (text: string): string =>
  (beginsFormula.test(text) && !isPlain.test(text)) || isGuarded.test(text) ? `'${text}` : text;

export const unguarded = (cell: string): string => (isGuarded.test(cell) ? cell.slice(1) : cell);
