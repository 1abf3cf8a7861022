/** Tests that docs/security.md names an existing test for each measure. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";

const document = readFileSync(join(root, "docs/security.md"), "utf8");

interface Threat {
  readonly threat: string;
  readonly shownBy: string;
}

/** Returns the rows of the tables whose columns are threat, measure and test. */
function threatsOf(text: string): Threat[] {
  return text
    .split("\n## ")
    .filter((section) => section.includes("| threat | measure | shown by |"))
    .flatMap((section) =>
      [...section.matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]*) \|$/gm)]
        .map(([, threat = "", , shownBy = ""]) => ({ threat: threat.trim(), shownBy }))
        .filter(({ threat }) => threat !== "threat"),
    );
}

function faultOf({ threat, shownBy }: Threat): string | undefined {
  const [, title, path] = /^\[(.+)\]\(\.\.\/(test\/\S+\.test\.ts)\)$/.exec(shownBy) ?? [];
  if (title === undefined || path === undefined) return `${threat}: names no test`;
  const file = join(root, path);
  if (!existsSync(file)) return `${threat}: ${path} does not exist`;
  return readFileSync(file, "utf8").includes(title) ? undefined : `${threat}: ${path} has no test "${title}"`;
}

test("each measure names a test that exists", () => {
  const threats = threatsOf(document);
  expect(threats.length).toBeGreaterThan(30);
  expect(threats.map(faultOf).filter((fault) => fault !== undefined)).toEqual([]);
});

test("every kind of attacker has a section", () => {
  for (const actor of [
    ...["Hostile tenant", "Hostile rep", "Stolen phone"],
    ...["Webhook receiver", "Mistake of an admin", "Misconfiguration of AWS"],
  ]) {
    expect(document).toContain(`\n## ${actor}\n`);
  }
});
