/** Reads and changes CHANGELOG.md, which has the format of Keep a Changelog 1.1.0. */
import { join } from "node:path";
import { root } from "../build/bundle.ts";
import type { Release } from "./releases.ts";

export const CHANGELOG = join(root, "CHANGELOG.md");

const SECTION = /^## \[([^\]]+)\](?: - (\S+))?$/;
const GROUP = /^### (.+)$/;
const groups: ReadonlySet<string> = new Set(["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]);

interface Section {
  readonly version: string;
  readonly date: string | undefined;
  readonly entries: number;
}

function sectionsOf(text: string): Section[] {
  const parts = text.split(/^(?=## )/m).slice(1);
  return parts.map((part) => {
    const [title = "", ...lines] = part.split("\n");
    const [, version = title, date] = SECTION.exec(title) ?? [];
    return { version, date, entries: lines.filter((line) => line.startsWith("- ")).length };
  });
}

/** Returns the faults of the changelog: missing releases, wrong dates, empty sections, and headings that the format does not allow. */
export function changelogFaults(text: string, releases: readonly Release[]): string[] {
  const sections = sectionsOf(text);
  const wanted = ["Unreleased", ...releases.toReversed().map(({ version, date }) => `${version} - ${date}`)];
  const found = sections.map(({ version, date }) => (date === undefined ? version : `${version} - ${date}`));
  const order =
    wanted.join() === found.join() ? [] : [`its sections are ${found.join(", ")} instead of ${wanted.join(", ")}`];
  const unknown = text.split("\n").flatMap((line) => {
    const [, group] = GROUP.exec(line) ?? [];
    return group === undefined || groups.has(group) ? [] : [`"${line}" is not a heading of Keep a Changelog`];
  });
  const empty = sections.filter(({ version, entries }) => version !== "Unreleased" && entries === 0);
  return [...order, ...unknown, ...empty.map(({ version }) => `the section of ${version} is empty`)];
}

/** Renames the section `Unreleased` to the release, and adds a new section `Unreleased`. Throws if the section has no entries. */
export function withRelease(text: string, version: string, date: string): string {
  const [unreleased] = sectionsOf(text);
  if (unreleased?.version !== "Unreleased" || unreleased.entries === 0) {
    throw new Error(
      "CHANGELOG.md has no entries under Unreleased: write what the release changes for apps and operators",
    );
  }
  return text.replace("## [Unreleased]\n", `## [Unreleased]\n\n## [${version}] - ${date}\n`);
}
