/**
 * Implements `npm run release -- check|cut`. It checks the versions, the changelog and the rights of functions, or records the current
 * commit as a release.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "../build/bundle.ts";
import { argumentsOf, runCommand, unknownCommand } from "../command/options.ts";
import { contractOf } from "../openapi/breaking.ts";
import { openApiDocument } from "../openapi/generate.ts";
import { CHANGELOG, changelogFaults, withRelease } from "../release/changelog.ts";
import { gradualRights, parseRights, removedRights } from "../release/gradual-rights.ts";
import { recordRows } from "../release/record.ts";
import {
  isLater,
  lastRelease,
  packageVersion,
  type Release,
  releaseFile,
  releases,
  rightsOfRelease,
} from "../release/releases.ts";
import { schemasOfRelease } from "../release/stored-schemas.ts";

const usage = `npm run release -- check|cut
    check  compares package.json, CHANGELOG.md and the rights of functions with releases/
    cut    records the current commit as the release of package.json's version, and begins the next minor version
exit code 0: success, 1: faults or any other error, 2: wrong usage`;

const git = (...args: string[]): string => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();

async function faults(): Promise<string[]> {
  const last = lastRelease();
  const version = packageVersion();
  const isNew = isLater(version, last);
  const recorded = rightsOfRelease(last);
  const removed = recorded === undefined ? [] : removedRights(parseRights(recorded), await gradualRights());
  return [
    ...(isNew ? [] : [`the version ${version} of package.json is not later than release ${last.version}`]),
    ...changelogFaults(readFileSync(CHANGELOG, "utf8"), releases()).map((fault) => `CHANGELOG.md: ${fault}`),
    ...removed.map((fault) => `${fault}, and the code of release ${last.version} still uses it during a deployment`),
  ];
}

async function check(): Promise<number> {
  const found = await faults();
  for (const fault of found) console.error(fault);
  if (found.length === 0) console.log(`${packageVersion()} comes after release ${lastRelease().version}`);
  return found.length === 0 ? 0 : 1;
}

const listOf = (values: readonly unknown[]): string =>
  `[\n${values.map((value) => `  ${JSON.stringify(value)}`).join(",\n")}\n ]`;
const mapOf = (values: object): string =>
  `{\n${Object.entries(values)
    .map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
    .join(",\n")}\n }`;

/**
 * Returns as JSON the table rows and API responses that `recordRows` gets from this release, and the schemas of the release. Each row,
 * response and schema has its own line, so that a diff of two releases shows which of them changed.
 */
async function shapesText(): Promise<string> {
  const { companyId, owner, rows, answers } = await recordRows(root);
  const parts = { companyId: String(companyId), owner: JSON.stringify(owner), rows: listOf(rows) };
  const fields = Object.entries({ ...parts, answers: mapOf(answers), schemas: mapOf(schemasOfRelease()) });
  return `{\n${fields.map(([name, text]) => ` "${name}": ${text}`).join(",\n")}\n}\n`;
}

/**
 * Returns as JSON the rights of the functions that a deployment replaces step by step. Each right has its own line, so that a diff of two
 * releases shows which rights changed.
 */
const rightsText = async (): Promise<string> =>
  `{\n${Object.entries(await gradualRights())
    .map(([file, rights]) => ` ${JSON.stringify(file)}: ${listOf(rights)}`)
    .join(",\n")}\n}\n`;

async function cut(): Promise<number> {
  if (git("status", "--porcelain") !== "")
    throw new Error("there are changes that are not committed: commit them first");
  if ((await check()) !== 0) return 1;
  const version = packageVersion();
  const release: Release = { version, date: new Date().toISOString().slice(0, 10), commit: git("rev-parse", "HEAD") };
  const changelog = withRelease(readFileSync(CHANGELOG, "utf8"), version, release.date);
  const files = {
    shapes: await shapesText(),
    rights: await rightsText(),
    openapi: `${JSON.stringify(contractOf(await openApiDocument()), null, 1)}\n`,
    release: `${JSON.stringify(release, null, 2)}\n`,
  };
  mkdirSync(dirname(releaseFile(version, "release")), { recursive: true });
  for (const name of ["shapes", "rights", "openapi", "release"] as const)
    writeFileSync(releaseFile(version, name), files[name]);
  writeFileSync(CHANGELOG, changelog);
  const next = version.replace(/\.(\d+)\.\d+$/, (_, minor: string) => `.${Number(minor) + 1}.0`);
  for (const name of ["package.json", "package-lock.json"]) setVersion(join(root, name), version, next);
  for (const command of ["openapi", "client"]) execFileSync("npm", ["run", "--silent", command], { cwd: root });
  console.log(
    `${relative(root, dirname(releaseFile(version, "release")))} records release ${version}, and ${next} begins`,
  );
  return 0;
}

/**
 * Replaces the version near the beginning of a file. It occurs there once in package.json, and twice in package-lock.json. The rest of
 * package-lock.json contains versions of dependencies, which must not change.
 */
function setVersion(file: string, version: string, next: string): void {
  const text = readFileSync(file, "utf8");
  const head = text.slice(0, 400).replaceAll(`"version": "${version}"`, `"version": "${next}"`);
  writeFileSync(file, `${head}${text.slice(400)}`);
}

const commands: Readonly<Record<string, () => number | Promise<number>>> = { check, cut };
await runCommand(async () => {
  const { positionals } = argumentsOf({}, usage);
  const [name = "", ...more] = positionals;
  const command = Object.hasOwn(commands, name) && more.length === 0 ? commands[name] : undefined;
  if (command === undefined) throw unknownCommand(positionals, usage);
  return command();
});
