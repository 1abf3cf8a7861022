/** Writes the tables of a bench into a page of docs. The text before and after them is written by hand. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const docs = join(import.meta.dirname, "../../docs");

/** Writes the tables into the page `name`. `command` is the command that makes these tables. */
export function writePage(name: string, command: string, tables: string): void {
  writeFileSync(join(docs, name), withTables(readPage(name), command, tables));
}

export const readPage = (name: string): string => readFileSync(join(docs, name), "utf8");

/**
 * Returns the text of the page with new tables between the two comments that mark their begin and their end. Throws an error unless the
 * page has each comment once, in this order.
 */
export function withTables(text: string, command: string, tables: string): string {
  const [begin, end] = [`<!-- ${command}: begin -->`, `<!-- ${command}: end -->`];
  const [before, rest, ...more] = text.split(begin);
  const [, after, ...others] = rest?.split(end) ?? [];
  if (rest === undefined || after === undefined || more.length + others.length > 0)
    throw new Error(`the page must contain "${begin}" and then "${end}", each once`);
  return `${before}${begin}\n\n${tables.trim()}\n\n${end}${after}`;
}

/** Returns a Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, i) => Math.max(title.length, 3, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
