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
  /** Runs the test files, or all tests of the gate. Returns the name of the first test that fails. */
  run(tests: readonly string[]): Promise<string | undefined>;
  /**
   * Runs the test files, or only their tests whose names match `named`. Returns the name of the first test that fails with the fault, or
   * undefined if all pass.
   */
  caught(fault: Fault, tests: readonly string[], named?: string): Promise<string | undefined>;
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
    run: (tests) => firstFailure(directory, tests, "", { options: ["--project", "deep"], limitMs: WHOLE_MS }),
    async caught({ file, start, end, to }, tests, named = "") {
      if (tests.length === 0) return undefined;
      const path = join(directory, file);
      const whole = readFileSync(path, "utf8");
      writeFileSync(path, whole.slice(0, start) + to + whole.slice(end));
      try {
        return await firstFailure(directory, tests, named);
      } finally {
        writeFileSync(path, whole);
      }
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Time after which a run counts as failed, because a fault may make the service wait for ever. */
const HANGS_MS = 300_000;
/** The limit for all tests of the gate on a machine that also does other work. */
const WHOLE_MS = 3_600_000;

interface Run {
  readonly options: readonly string[];
  readonly limitMs: number;
}

async function firstFailure(
  cwd: string,
  tests: readonly string[],
  named: string,
  { options: own, limitMs }: Run = { options: ["--bail", "1"], limitMs: HANGS_MS },
): Promise<string | undefined> {
  const options = ["run", "--project", "unit", "--project", "api", ...own, "--reporter", "tap-flat", "-t", named];
  const child = spawn(process.execPath, [join(ROOT, "node_modules/vitest/vitest.mjs"), ...options, ...tests], {
    cwd,
    timeout: limitMs,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (bytes) => (output += bytes));
  child.stderr.on("data", (bytes) => (output += bytes));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  if (code === 0) return undefined;
  return (
    /^not ok \d+ - (.*?)(?: # .*)?$/m.exec(output)?.[1] ?? `exit ${code}: ${output.slice(-300).replaceAll("\n", " ")}`
  );
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
