/** The format of exported and imported CSV files. The console uses this file too, so it must not use modules of Node.js. */

/** Thrown for a file that cannot be imported at all. */
export class BadFile extends Error {
  override readonly name = "BadFile";
}

export const addressColumns = ["address1", "address2", "city", "state", "zip"] as const;

export const exportColumns = [
  "id",
  "name",
  "phone",
  "email",
  "lat",
  "lng",
  ...addressColumns,
  "status",
  "assignedTo",
  "assignedToEmail",
  "tags",
  "notes",
  "createdBy",
  "source",
  "createdAt",
] as const;

/** An export has the columns after `exportColumns` only on request. */
export const knownColumns = [
  ...exportColumns,
  "sourceId",
  "secondaryPhoneNumber",
  "updatedAt",
  "customFieldData",
] as const;
export type Column = (typeof knownColumns)[number];

export interface FileForm {
  readonly columns?: "all" | undefined;
  readonly bom?: boolean | undefined;
}

export const columnsIn = ({ columns }: FileForm): readonly Column[] =>
  columns === "all" ? knownColumns : exportColumns;

/** An import ignores these columns, because the service sets their values. Only an import with `matchBy=id` reads the column `id`. */
const unread: ReadonlySet<Column> = /* @__PURE__ */ new Set<Column>(["id", "createdBy", "createdAt", "updatedAt"]);

export const importColumns: readonly Column[] = /* @__PURE__ */ knownColumns.filter((column) => !unread.has(column));

/** Separates the tags of a cell. No tag contains this character. */
export const TAG_SEPARATOR = ";";

/** Characters with which a formula may begin. Spreadsheet programs skip line breaks and NUL, and read full-width signs like ASCII signs. */
const FORMULA = "[=+\\-@\\t\\r\\n\\0＝＋－＠]";
const beginsFormula = new RegExp(`^${FORMULA}`);
/** Text that already begins with quotes and a formula gets another quote, so that an import, which removes one, restores it exactly. */
const isGuarded = new RegExp(`^'+${FORMULA}`);
/** A number or phone number is no formula for a spreadsheet. A quote before it would turn a number into text. */
const isPlain = /^(?=.*\d)[\d +\-().]+$/;

/** Puts a quote (the guard) before a cell that a spreadsheet would run as a formula. */
export const guarded = (text: string): string =>
  (beginsFormula.test(text) && !isPlain.test(text)) || isGuarded.test(text) ? `'${text}` : text;

export const unguarded = (cell: string): string => (isGuarded.test(cell) ? cell.slice(1) : cell);

/** Returns the text of a cell without its guard. The formula `="02108"`, with which Excel keeps the leading zero, becomes `02108`. */
export function textOf(cell: string): string {
  if (!cell.startsWith('="')) return unguarded(cell);
  const text = /^="(.*)"$/s.exec(cell)?.[1];
  return text === undefined || text.replaceAll('""', "").includes('"') ? cell : text.replaceAll('""', '"');
}

export async function* templateText(): AsyncGenerator<string> {
  // The names of columns need no quotes, so the CSV library is not loaded.
  yield `${importColumns.join(",")}\r\n`;
}

const delimiters = [",", ";", "\t"] as const;

/** A first line such as `sep=;` names the delimiter for Excel. Excel does not show this line, so the next line is row 1. */
const separatorLine = /^"?sep=([,;\t])"?(?:\r\n|\n|\r|$)/i;

/** Matches a line that names another delimiter. Does not match several cells, which are a header whose first title begins with `sep=`. */
const otherSeparatorLine = /^"?sep=([^,;\t\r\n]*)(?:[\r\n]|$)/i;
/** Maximum characters of an unknown delimiter in an error message. */
const SHOWN_DELIMITER = 10;

/** Returns the delimiter, and the text without a line such as `sep=;`. Throws BadFile if this line names another delimiter. */
export function beginningOf(text: string): { readonly delimiter: string; readonly rest: string } {
  const [line = "", separator] = separatorLine.exec(text) ?? [];
  const other = separator === undefined ? otherSeparatorLine.exec(text)?.[1] : undefined;
  if (other !== undefined) {
    const shown = other.slice(0, SHOWN_DELIMITER).trim().replace(/"$/, "");
    const named = shown === "" ? "no delimiter" : `the delimiter "${shown}"`;
    throw new BadFile(
      `The first line is "sep=" and names ${named}. The delimiter must be a comma, a semicolon or a tab: save the file with one of them.`,
    );
  }
  return { delimiter: separator ?? delimiterOf(text), rest: text.slice(line.length) };
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
