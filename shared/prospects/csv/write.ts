/** Writes CSV text with CRLF line endings. A cell that a spreadsheet would run as a formula gets a leading quote. */
import { guarded } from "#shared/prospects/csv/format.ts";

const needsQuotes = /[",\r\n]/;

const written = (cell: string): string => {
  const text = guarded(cell);
  return needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Each row ends with a line break. */
export const csvText = (rows: readonly (readonly string[])[]): string =>
  rows.map((cells) => `${cells.map(written).join(",")}\r\n`).join("");

/** Writes a number without an exponent. Otherwise the protection against formulas would add a quote to a negative number. */
export function decimal(value: number): string {
  const [digits = "", exponent] = String(value).split("e-");
  if (exponent === undefined) return digits;
  const significant = digits.replace(/[-.]/g, "");
  return `${value < 0 ? "-" : ""}0.${"0".repeat(Number(exponent) - 1)}${significant}`;
}
