/** Applies faults to a copy of the service in a temporary directory, and looks for a test that fails. */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** Test files, and the names of tests in them. Without names, all tests of the files run. */
export interface Tests {
  readonly files: readonly string[];
  readonly names?: readonly string[];
}

/** Maximum milliseconds of a test run, plus `FILE_MS` for each test file. A fault may make the service wait for ever. */
const HANGS_MS = 300_000;
const FILE_MS = 30_000;

/** Tries two faults at a time, and prints the test that notices each. Returns the number of faults that no test notices. */
export async function countMissed<F extends { readonly name: string }>(
  faults: readonly F[],
  failure: (fault: F, worker: number) => Promise<string | undefined>,
): Promise<number> {
  const left = [...faults];
  let missed = 0;
  async function work(worker: number): Promise<void> {
    for (let fault = left.shift(); fault !== undefined; fault = left.shift()) {
      const by = await failure(fault, worker);
      console.log(by === undefined ? `MISSED ${fault.name}` : `${fault.name}\n  caught by ${by}`);
      if (by === undefined) missed++;
    }
  }
  await Promise.all([work(0), work(1)]);
  console.log(`${faults.length} faults, ${missed} missed`);
  return missed;
}

/** Copies the service, and removes the copy when this process ends. */
export function copyOfService(): string {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-mutants-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  for (const name of readdirSync(ROOT)) {
    const [from, to] = [join(ROOT, name), join(directory, name)];
    const filter = (path: string): boolean => basename(path) !== "node_modules";
    if (name === "node_modules") symlinkSync(from, to);
    else if (name !== ".git") cpSync(from, to, { recursive: true, filter });
  }
  return directory;
}

/** Runs groups of tests one after the other until a test fails. Returns the name of this test, or undefined if all pass. */
export async function firstFailure(
  cwd: string,
  steps: readonly Tests[],
  variables: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  for (const { files, names = [] } of steps) {
    if (files.length === 0) continue;
    const pattern = names.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    const chosen = pattern === "" ? [] : ["--testNamePattern", `(?:${pattern})$`];
    const options = ["--project", "unit", "--project", "api", "--maxWorkers", "1", "--bail", "1", ...chosen];
    const timeout = HANGS_MS + FILE_MS * files.length;
    const { code, output } = await vitest(cwd, [...options, "--reporter", "tap-flat", ...files], variables, timeout);
    if (code === 0) continue;
    // Tests that did not run, because another one failed before, have no `error:`, so this pattern does not match them.
    const [, name] = /^not ok \d+ - (.*?)(?: # .*)?\n +---\n +error:/m.exec(output) ?? [];
    return name ?? `exit ${code}: ${output.slice(-300).replaceAll("\n", " ")}`;
  }
  return undefined;
}

/** Runs vitest in the folder `cwd`, and kills it after `timeout` milliseconds. */
export async function vitest(
  cwd: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
  timeout?: number,
) {
  const program = join(ROOT, "node_modules/vitest/vitest.mjs");
  const child = spawn(process.execPath, [program, "run", ...args], {
    cwd,
    env: { ...process.env, ...variables },
    timeout,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (bytes) => (output += bytes));
  child.stderr.on("data", (bytes) => (output += bytes));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  return { code, output };
}

/** The TypeScript files below a directory, as paths from the root. */
export const sourcesIn = (directory: string): string[] =>
  readdirSync(join(ROOT, directory), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(directory, name))
    .toSorted();

/**
 * Returns a function that lists the tests of `npm test` that can notice a fault in a file: the unit tests that import the file, through the
 * fewest other files first, and all API tests.
 */
export function testsOfFiles(): (file: string) => string[] {
  const importers = new Map<string, Set<string>>();
  for (const file of ["shared", "functions", "infra", "test"].flatMap(sourcesIn)) {
    const source = readFileSync(join(ROOT, file), "utf8");
    for (const [, name = ""] of source.matchAll(/(?:from|import\() ?"((?:#shared|\.)[^"]+\.ts)"/g)) {
      const target = name.startsWith("#") ? name.slice(1) : relative(ROOT, resolve(ROOT, dirname(file), name));
      importers.set(target, (importers.get(target) ?? new Set()).add(file));
    }
  }
  const api = sourcesIn("test").filter((name) => name.endsWith(".api.test.ts"));
  return (file) => {
    const found = new Set([file]);
    for (const one of found) for (const importer of importers.get(one) ?? []) found.add(importer);
    return [...[...found].filter((one) => /^[^.]+\.test\.ts$/.test(one)), ...api];
  };
}
