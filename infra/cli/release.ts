/** Implements `npm run release`: checks the changelog and the rights of functions, or records the release of package.json's version. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";
import { contractOf } from "../openapi/breaking.ts";
import { openApiDocument } from "../openapi/generate.ts";
import { gradualRights, RightsByFile, removedRights } from "../release/gradual-rights.ts";
import { lastRelease, packageVersion, RELEASES, recorded } from "../release/releases.ts";
import { schemasOfRelease } from "../release/stored-schemas.ts";
import { command, runCommands } from "./command/options.ts";
import { recordCompany } from "./release/record.ts";

const usage = `npm run release -- check|record
    check   compares package.json, CHANGELOG.md and the rights of functions with the last release
    record  records this code in releases/ as the release of package.json's version, instead of the last release
exit code 0: success, 1: faults or any other error, 2: wrong usage`;

async function check(): Promise<number> {
  const [version, last] = [packageVersion(), lastRelease()];
  const [, title] = /^## \[(.*?)\]/m.exec(readFileSync(join(root, "CHANGELOG.md"), "utf8")) ?? [];
  const removed = removedRights(RightsByFile.parse(recorded("rights")), await gradualRights());
  const faults = [
    ...(title === version || title === "Unreleased" ? [] : [`CHANGELOG.md begins with ${title} instead of ${version}`]),
    ...removed.map((fault) => `${fault}, and the code of release ${last} still uses it during a deployment`),
  ];
  for (const fault of faults) console.error(fault);
  if (faults.length === 0) console.log(`version ${version} agrees with the record of release ${last}`);
  return faults.length === 0 ? 0 : 1;
}

/** Returns JSON with a line for each value in the first two levels, so that a diff of two releases shows which of them changed. */
const linesOf = (content: object): string =>
  `${JSON.stringify(content, null, 1).replaceAll(/\n {3,}|\n {2}(?=[}\]])/g, "")}\n`;

async function record(): Promise<number> {
  const files = {
    openapi: `${JSON.stringify(contractOf(await openApiDocument()), null, 1)}\n`,
    shapes: linesOf({ ...(await recordCompany()), schemas: schemasOfRelease() }),
    rights: linesOf(await gradualRights()),
  };
  const folder = join(RELEASES, packageVersion());
  rmSync(RELEASES, { recursive: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.json`), text);
  console.log(`releases/${packageVersion()} records the release`);
  return 0;
}

const None = z.strictObject({});
await runCommands(usage, { check: command(None, check), record: command(None, record) });
