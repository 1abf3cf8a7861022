/** Tests that writing the tables of a bench into docs/benchmarks.md changes nothing else on the page. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withTables } from "./written-page.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/benchmarks.md"), "utf8");

test("the tables are replaced, and the text written by hand stays", () => {
  const once = withTables(page, "| new |");
  const [head = "", end = ""] = page.split(/<!--[^>]*begin -->[\s\S]*<!--[^>]*end -->/);
  expect(once.startsWith(head)).toBe(true);
  expect(once.endsWith(end)).toBe(true);
  expect(once).toContain("| new |");
  expect(withTables(withTables(page, "| old |"), "| new |")).toBe(once);
});

test("a page without the marks, or with two of one mark, is refused", () => {
  const [head = ""] = page.split("<!--");
  expect(() => withTables(head, "| new |")).toThrow("must contain");
  expect(() => withTables(page + page, "| new |")).toThrow("must contain");
});
