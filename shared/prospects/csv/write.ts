/** Writes rows as CSV text: CRLF, quotes where needed, every cell guarded against formulas. */
import { stringify } from "csv-stringify/sync";
import { guarded } from "#shared/prospects/csv/format.ts";

const options = {
  record_delimiter: "\r\n",
  // The library quotes a cell that holds the record delimiter. Every other line break needs quotes as well.
  quoted_match: /[\r\n]/,
} as const;

/** Ends each row with a line break. */
export const csvText = (rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ""
    : stringify(
        rows.map((cells) => cells.map(guarded)),
        options,
      );

/** Writes a number without an exponent, so that the guard takes a negative one for plain. */
export function decimal(value: number): string {
  const [digits = "", exponent] = String(value).split("e-");
  if (exponent === undefined) return digits;
  const significant = digits.replace(/[-.]/g, "");
  return `${value < 0 ? "-" : ""}0.${"0".repeat(Number(exponent) - 1)}${significant}`;
}
