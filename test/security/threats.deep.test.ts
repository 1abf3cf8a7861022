/** Tests that docs/security.md names an existing test for each measure. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";

const document = readFileSync(join(root, "docs/security.md"), "utf8");

/** The rows of the tables whose columns are threat, measure and test. */
const rows = document
  .split("\n## ")
  .filter((section) => section.includes("| threat | measure | shown by |"))
  .flatMap((section) => [...section.matchAll(/^\| (?!threat )([^|]+) \| ([^|]+) \| ([^|]*) \|$/gm)]);

test("each measure names a test that exists", () => {
  expect(rows.length).toBeGreaterThan(30);
  for (const [, threat, , shownBy = ""] of rows) {
    const [, title = "", path = ""] = /^\[(.+)\]\(\.\.\/(test\/\S+\.test\.ts)\)$/.exec(shownBy) ?? [];
    expect(path, `${threat} names no test`).not.toBe("");
    expect(readFileSync(join(root, path), "utf8"), threat).toContain(title);
  }
});

test("every kind of attacker has a section", () => {
  for (const actor of [
    ...["Hostile tenant", "Hostile rep", "Stolen phone"],
    ...["Webhook receiver", "Mistake of an admin", "Misconfiguration of AWS"],
  ]) {
    expect(document).toContain(`\n## ${actor}\n`);
  }
});
