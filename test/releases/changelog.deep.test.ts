/** Tests that the changelog has the format of Keep a Changelog and a section for the present version. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { changelogFaults } from "../../infra/release/changelog.ts";
import { packageVersion } from "../../infra/release/releases.ts";

test("the changelog begins with the present version, or with what is not released yet", () => {
  const text = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  expect(changelogFaults(text, packageVersion())).toEqual([]);
  expect(changelogFaults(text.replace("\n## ", "\n## [Unreleased]\n\n- One.\n\n## "), "9.0.0")).toEqual([]);
});

const section = (title: string, entries = "- One.") => `## ${title}\n\n${entries}\n\n`;
const now = section("[1.1.0] - 2030-01-01");

test.each([
  ["another version", section("[1.0.0] - 2030-01-01"), "its first section is not 1.1.0"],
  ["a version without a date", section("[1.1.0]"), '"## [1.1.0]" is not a version with a date'],
  ["a wrong order", now + section("[1.2.0] - 2030-02-02"), "its versions are not in order"],
  ["a late section", now + section("[Unreleased]"), "a section Unreleased is not the first one"],
  ["an unknown heading", `${now}### Improved\n`, '"### Improved" is not a heading of Keep a Changelog'],
  ["an empty section", now + section("[1.0.0] - 2029-01-01", ""), "section [1.0.0] - 2029-01-01 has no entries"],
])("a fault is found: %s", (_, text, fault) => {
  expect(changelogFaults(text, "1.1.0")).toContain(fault);
});
