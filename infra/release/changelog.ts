/** Checks CHANGELOG.md, which has the format of Keep a Changelog 1.1.0. */
import { byVersion } from "./releases.ts";

const groups: ReadonlySet<string> = new Set(["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]);

/**
 * Returns the faults of the changelog. The first section must be `Unreleased` or the version of package.json. A dated section for each
 * version follows, the newest first. Each section must have entries.
 */
export function changelogFaults(text: string, version: string): string[] {
  const sections = text.split(/^## /m).slice(1);
  const titles = sections.map((section) => section.slice(0, section.indexOf("\n")));
  const dated = titles.filter((title) => title !== "[Unreleased]");
  const versions = dated.map((title) => /^\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$/.exec(title)?.[1] ?? "");
  return [
    ...(titles[0] === "[Unreleased]" || versions[0] === version ? [] : [`its first section is not ${version}`]),
    ...(titles.slice(1).includes("[Unreleased]") ? ["a section Unreleased is not the first one"] : []),
    ...dated.filter((_, i) => versions[i] === "").map((title) => `"## ${title}" is not a version with a date`),
    ...(versions.join() === versions.toSorted(byVersion).reverse().join() ? [] : ["its versions are not in order"]),
    ...titles.filter((_, i) => !/^- /m.test(sections[i] ?? "")).map((title) => `section ${title} has no entries`),
    ...[...text.matchAll(/^### (.*)$/gm)]
      .filter(([, group = ""]) => !groups.has(group))
      .map(([line]) => `"${line}" is not a heading of Keep a Changelog`),
  ];
}
