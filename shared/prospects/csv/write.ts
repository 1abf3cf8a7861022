/** Rows -> CSV text as exports have it: CRLF, quotes where they are needed, no cell a formula. */
import { stringify } from "csv-stringify/sync";
import { guarded } from "#shared/prospects/csv/formula.ts";

const options = {
  record_delimiter: "\r\n",
  // The library looks for the delimiter of records alone: a line break of any kind needs quotes.
  quoted_match: /[\r\n]/,
} as const;

/** Each row ended by a line break. */
export const csvText = (rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ""
    : stringify(
        rows.map((cells) => cells.map(guarded)),
        options,
      );

/** A number as digits with a point and never with an exponent, so that a negative one is plain for the guard. */
export function decimal(value: number): string {
  const [digits = "", exponent] = String(value).split("e-");
  if (exponent === undefined) return digits;
  const significant = digits.replace(/[-.]/g, "");
  return `${value < 0 ? "-" : ""}0.${"0".repeat(Number(exponent) - 1)}${significant}`;
}
