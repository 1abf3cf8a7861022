/** Tests that writing the tables of a bench into docs/benchmarks.md changes nothing else on the page. */
import { expect, test } from "vitest";
import { readPage, withTables } from "./written-page.ts";

const COMMAND = "npm run bench -- --write";
const page = readPage("benchmarks.md");

test("the tables are replaced, and the text written by hand stays", () => {
  const once = withTables(page, COMMAND, "| new |");
  const [head = "", end = ""] = page.split(/<!--[^>]*begin -->[\s\S]*<!--[^>]*end -->/);
  expect(once.startsWith(head)).toBe(true);
  expect(once.endsWith(end)).toBe(true);
  expect(once).toContain("| new |");
  expect(withTables(withTables(page, COMMAND, "| old |"), COMMAND, "| new |")).toBe(once);
});

test("a page without the marks, or with two of one mark, is refused", () => {
  const [head = ""] = page.split("<!--");
  expect(() => withTables(head, COMMAND, "| new |")).toThrow("must contain");
  expect(() => withTables(page + page, COMMAND, "| new |")).toThrow("must contain");
});
