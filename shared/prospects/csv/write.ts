/** Writes CSV text with CRLF line endings. */
import { stringify } from "csv-stringify/sync";
import { guarded } from "#shared/prospects/csv/format.ts";

const options = {
  record_delimiter: "\r\n",
  // The library quotes only cells with CRLF. Other line breaks need quotes too.
  quoted_match: /[\r\n]/,
} as const;

export const csvText = (rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ""
    : stringify(
        rows.map((cells) => cells.map(guarded)),
        options,
      );

/** Writes a number without an exponent. `guarded` would treat a negative number with an exponent as a formula. */
export function decimal(value: number): string {
  const [digits = "", exponent] = String(value).split("e-");
  if (exponent === undefined) return digits;
  const significant = digits.replace(/[-.]/g, "");
  return `${value < 0 ? "-" : ""}0.${"0".repeat(Number(exponent) - 1)}${significant}`;
}
