/** Tests `npm run release -- cut` in a clone. The command must record the current commit and begin the next version. */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { root } from "../../infra/build/bundle.ts";
import { gradualRights, parseRights, removedRights } from "../../infra/release/gradual-rights.ts";
import { packageVersion } from "../../infra/release/releases.ts";
import { unnumberedChanges } from "../../infra/release/stored-schemas.ts";

const clone = mkdtempSync(join(tmpdir(), "canvassing-cut-"));
afterAll(() => rmSync(clone, { recursive: true, force: true }));

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: clone, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const read = (file: string): string => readFileSync(join(clone, file), "utf8");
const Version = z.object({ version: z.string() });
const Shapes = z.object({ schemas: z.record(z.string(), z.object({ shape: z.number(), schema: z.unknown() })) });

test("a release is recorded with its commit, contract, rows and rights; the changelog and the version are those of the next release", async () => {
  const version = packageVersion();
  execFileSync("git", ["clone", "-q", root, clone]);
  for (const folder of ["node_modules", "docs/client/node_modules"])
    symlinkSync(join(root, folder), join(clone, folder));
  appendFileSync(join(clone, ".git/info/exclude"), "node_modules\n");

  expect(run(process.execPath, "infra/cli/release.ts", "cut")).toContain(`records release ${version}`);
  const commit = run("git", "rev-parse", "HEAD").trim();
  expect(JSON.parse(read(`releases/${version}/release.json`))).toMatchObject({ version, commit });
  expect(unnumberedChanges(Shapes.parse(JSON.parse(read(`releases/${version}/shapes.json`))).schemas)).toEqual([]);
  expect(
    removedRights(parseRights(JSON.parse(read(`releases/${version}/rights.json`))), await gradualRights()),
  ).toEqual([]);
  expect(read("CHANGELOG.md")).toMatch(
    new RegExp(`## \\[Unreleased\\]\n\n## \\[${version}\\] - \\d{4}-\\d\\d-\\d\\d\n`),
  );
  const next = Version.parse(JSON.parse(read("package.json"))).version;
  expect(next).not.toBe(version);
  expect(run(process.execPath, "infra/cli/release.ts", "check")).toContain(`${next} comes after release ${version}`);
  expect(() => run(process.execPath, "infra/cli/release.ts", "cut")).toThrow();
});
