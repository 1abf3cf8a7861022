/** Writes the tables of `npm run bench -- --write` into docs/benchmarks.md. The text before and after them is written by hand. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const page = join(import.meta.dirname, "../../docs/benchmarks.md");
const BEGIN = "<!-- npm run bench -- --write: begin -->";
const END = "<!-- npm run bench -- --write: end -->";

/**
 * Replaces the text between the comments `BEGIN` and `END` of the page. Throws an error unless the page has each of them once, in this
 * order.
 */
export function writeBenchmarks(tables: string): void {
  writeFileSync(page, withTables(readFileSync(page, "utf8"), tables));
}

export function withTables(text: string, tables: string): string {
  const [before = "", rest, ...more] = text.split(BEGIN);
  const [, after, ...others] = rest?.split(END) ?? [];
  if (rest === undefined || after === undefined || more.length + others.length > 0)
    throw new Error(`docs/benchmarks.md must contain "${BEGIN}" and then "${END}", each once`);
  return `${before}${BEGIN}\n\n${tables.trim()}\n\n${END}${after}`;
}
