/** Tests that the changelog has the format of Keep a Changelog and a section for each release. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CHANGELOG, changelogFaults, withRelease } from "../../infra/release/changelog.ts";
import { releases } from "../../infra/release/releases.ts";

const text = readFileSync(CHANGELOG, "utf8");
const [first] = releases();

test("the changelog has a section for each release, and one for what is not released yet", () => {
  expect(changelogFaults(text, releases())).toEqual([]);
});

const wrong = [
  [
    "a release that it does not have",
    text,
    [...releases(), { version: "9.0.0", date: "2030-01-01", commit: "" }],
    "its sections are",
  ],
  ["another date", text.replace("[0.1.0] - 2026", "[0.1.0] - 2025"), releases(), "0.1.0 - 2025"],
  ["an unknown heading", `${text}\n### Improved\n`, releases(), '"### Improved" is not a heading'],
  [
    "an empty release",
    "## [Unreleased]\n\n## [0.1.0] - 2026-11-22\n",
    [first ?? expect.fail()],
    "the section of 0.1.0 is empty",
  ],
] as const;

test.each(wrong)("a fault is found: %s", (_, changed, known, fault) => {
  expect(changelogFaults(changed, known).join()).toContain(fault);
});

test("a release takes the entries that are not released yet", () => {
  const released = withRelease("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n", "1.2.0", "2030-01-01");
  expect(released).toBe("# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-01\n\n### Added\n\n- One.\n");
  expect(() => withRelease("## [Unreleased]\n", "1.2.0", "2030-01-01")).toThrow("no entries under Unreleased");
});
