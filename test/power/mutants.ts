/**
 * Applies faults to a copy of the service, and looks for a test that fails. The copy is in a temporary directory, so that the checkout stays
 * as it is.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** One fault: the text between `start` and `end` of a file becomes `to`. */
export interface Fault {
  readonly name: string;
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly to: string;
}

/** Number of test files that run first: those that import the changed file in the fewest steps. The others run only if these pass. */
const NEAREST = 15;
/** Time after which a run counts as failed, and time in addition for each file, because a fault may make the service wait for ever. */
const HANGS_MS = 300_000;
const FILE_MS = 30_000;
/** The file of a copy that runs all laws of conditional writes, without those of the deep tests. */
const LAWS = "test/power/all-laws.test.ts";

/**
 * Runs for each fault the tests of `npm test` that can notice it: the unit tests that import the changed file, and all API tests. With
 * `laws`, the laws of conditional writes run first. Prints the test that notices each fault. Returns the faults that no test notices.
 */
export async function missedFaults(faults: readonly Fault[], { laws }: { laws: boolean }): Promise<Fault[]> {
  const directory = copyOfService();
  const missed: Fault[] = [];
  try {
    const testsOf = testsByDistance();
    const api = sourcesIn("test").filter((name) => name.endsWith(".api.test.ts"));
    for (const fault of faults) {
      const path = join(directory, fault.file);
      const whole = readFileSync(path, "utf8");
      writeFileSync(path, whole.slice(0, fault.start) + fault.to + whole.slice(fault.end));
      const near = testsOf(fault.file);
      const first = [...(laws ? [LAWS] : []), ...near.slice(0, NEAREST)];
      const by = (await failureOf(directory, first)) ?? (await failureOf(directory, [...near.slice(NEAREST), ...api]));
      writeFileSync(path, whole);
      console.log(by === undefined ? `MISSED ${fault.name}` : `${fault.name}\n  caught by ${by}`);
      if (by === undefined) missed.push(fault);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  console.log(`${faults.length} faults, ${missed.length} missed`);
  return missed;
}

function copyOfService(): string {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-mutants-"));
  for (const name of readdirSync(ROOT)) {
    const [from, to] = [join(ROOT, name), join(directory, name)];
    const filter = (path: string): boolean => basename(path) !== "node_modules";
    if (name === "node_modules") symlinkSync(from, to);
    else if (name !== ".git") cpSync(from, to, { recursive: true, filter });
  }
  writeFileSync(join(directory, LAWS), 'import { laws, testLaws } from "./laws.ts";\ntestLaws("writes", laws);\n');
  return directory;
}

/** Returns the name of the first test that fails, or undefined if all pass. */
async function failureOf(cwd: string, tests: readonly string[]): Promise<string | undefined> {
  if (tests.length === 0) return undefined;
  const options = ["run", "--project", "unit", "--project", "api", "--bail", "1", "--reporter", "tap-flat"];
  const child = spawn(process.execPath, [join(ROOT, "node_modules/vitest/vitest.mjs"), ...options, ...tests], {
    cwd,
    timeout: HANGS_MS + FILE_MS * tests.length,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (bytes) => (output += bytes));
  child.stderr.on("data", (bytes) => (output += bytes));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  if (code === 0) return undefined;
  // Tests that did not run, because another one failed before, have no error.
  const [, name] = /^not ok \d+ - (.*?)(?: # .*)?\n +---\n +error:/m.exec(output) ?? [];
  return name ?? `exit ${code}: ${output.slice(-300).replaceAll("\n", " ")}`;
}

/** Returns the TypeScript files below a directory, as paths from the root. */
export const sourcesIn = (directory: string): string[] =>
  readdirSync(join(ROOT, directory), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(directory, name))
    .toSorted();

/** Returns a function that lists the unit tests that import a file, directly or through other files, those with the fewest steps first. */
function testsByDistance(): (file: string) => string[] {
  const importers = new Map<string, Set<string>>();
  for (const file of ["shared", "functions", "infra", "test"].flatMap(sourcesIn)) {
    const source = readFileSync(join(ROOT, file), "utf8");
    for (const [, name = ""] of source.matchAll(/(?:from|import\() ?"((?:#shared|\.)[^"]+\.ts)"/g)) {
      const target = name.startsWith("#") ? name.slice(1) : relative(ROOT, resolve(ROOT, dirname(file), name));
      importers.set(target, (importers.get(target) ?? new Set()).add(file));
    }
  }
  return (file) => {
    const found = new Set([file]);
    for (const one of found) for (const importer of importers.get(one) ?? []) found.add(importer);
    return [...found].filter((one) => one.endsWith(".test.ts") && !/\.(api|deep|long)\.test\.ts$/.test(one));
  };
}
