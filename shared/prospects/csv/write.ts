/** Writes CSV text with CRLF line endings. A cell that a spreadsheet would run as a formula gets a quote at its beginning. */
import { stringify } from "csv-stringify/sync";
import { guarded } from "#shared/prospects/csv/format.ts";

const options = {
  record_delimiter: "\r\n",
  // The library quotes a cell with a line break only if the line break is CRLF. Cells with other line breaks need quotes too.
  quoted_match: /[\r\n]/,
} as const;

/** Returns the rows as CSV text. Each row ends with a line break. */
export const csvText = (rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ""
    : stringify(
        rows.map((cells) => cells.map(guarded)),
        options,
      );

/** Writes a number below 1e21 without an exponent, because `guarded` would treat a negative number with an exponent as a formula. */
export function decimal(value: number): string {
  const [digits = "", exponent] = String(value).split("e-");
  if (exponent === undefined) return digits;
  const significant = digits.replace(/[-.]/g, "");
  return `${value < 0 ? "-" : ""}0.${"0".repeat(Number(exponent) - 1)}${significant}`;
}
