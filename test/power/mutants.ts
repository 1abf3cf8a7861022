/**
 * Runs tests on changed copies of the service. Each copy has one fault, and a test must fail. The copies are in a temporary directory, so
 * that the checkout stays as it is.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** One fault: the text between `start` and `end` of a file becomes `to`. */
export interface Fault {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly to: string;
}

export interface Scratch {
  readonly directory: string;
  /** Runs the test files, or all tests of the gate. Returns the names of the tests that fail. */
  failures(tests: readonly string[]): Promise<string[]>;
  /** Runs the test files. Returns the name of the first test that fails with the fault, or undefined if all pass. */
  caught(fault: Fault, tests: readonly string[]): Promise<string | undefined>;
  remove(): void;
}

export function newScratch(): Scratch {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-mutants-"));
  for (const name of readdirSync(ROOT)) {
    if (name === ".git") continue;
    if (name === "node_modules") symlinkSync(join(ROOT, name), join(directory, name));
    else
      cpSync(join(ROOT, name), join(directory, name), {
        recursive: true,
        filter: (path) => !path.endsWith("/node_modules"),
      });
  }
  return {
    directory,
    failures: (tests) => failuresOf(directory, tests, ["--project", "deep"]),
    async caught({ file, start, end, to }, tests) {
      if (tests.length === 0) return undefined;
      const path = join(directory, file);
      const whole = readFileSync(path, "utf8");
      writeFileSync(path, whole.slice(0, start) + to + whole.slice(end));
      try {
        const [first] = await failuresOf(directory, tests, ["--bail", "1"]);
        return first;
      } finally {
        writeFileSync(path, whole);
      }
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Time after which a run counts as failed, and time in addition for each file, because a fault may make the service wait for ever. */
const HANGS_MS = 300_000;
const FILE_MS = 30_000;

/** The limit for all tests of the gate on a machine that also does other work. */
const WHOLE_MS = 3_600_000;

async function failuresOf(cwd: string, tests: readonly string[], own: readonly string[]): Promise<string[]> {
  const options = ["run", "--project", "unit", "--project", "api", ...own, "--reporter", "tap-flat"];
  const child = spawn(process.execPath, [join(ROOT, "node_modules/vitest/vitest.mjs"), ...options, ...tests], {
    cwd,
    timeout: tests.length === 0 ? WHOLE_MS : HANGS_MS + FILE_MS * tests.length,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (bytes) => (output += bytes));
  child.stderr.on("data", (bytes) => (output += bytes));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  // Tests that did not run, because another one failed before, have no error.
  const failed = [...output.matchAll(/^not ok \d+ - (.*?)(?: # .*)?\n +---\n +error:/gm)].map(([, name = ""]) => name);
  return code === 0 || failed.length > 0 ? failed : [`exit ${code}: ${output.slice(-300).replaceAll("\n", " ")}`];
}

/** Returns the TypeScript files below a directory, as paths from the root. */
export const sourcesIn = (directory: string): string[] =>
  readdirSync(join(ROOT, directory), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(directory, name))
    .toSorted();

/**
 * Returns the test files that import `file`, directly or through other files, those with the fewest steps first. `steps` limits the number
 * of steps.
 */
export function testsNear(file: string): string[] {
  const importers = importersOf();
  const found = new Map([[file, 0]]);
  for (const [one, step] of found) {
    for (const importer of importers.get(one) ?? []) if (!found.has(importer)) found.set(importer, step + 1);
  }
  return [...found.keys()].filter((one) => /^test\/.*\.test\.ts$/.test(one) && !/\.(deep|long)\.test\.ts$/.test(one));
}

let known: Map<string, Set<string>> | undefined;

function importersOf(): Map<string, Set<string>> {
  if (known !== undefined) return known;
  known = new Map();
  for (const file of ["shared", "functions", "infra", "test"].flatMap(sourcesIn)) {
    const source = readFileSync(join(ROOT, file), "utf8");
    for (const [, name = ""] of source.matchAll(/(?:from|import\() ?"((?:#shared|\.)[^"]+\.ts)"/g)) {
      const target = name.startsWith("#") ? name.slice(1) : relative(ROOT, resolve(ROOT, dirname(file), name));
      known.set(target, (known.get(target) ?? new Set()).add(file));
    }
  }
  return known;
}
