/**
 * Drops each condition of a write in turn, and looks for a test that notices it: `npm run power -- conditions [part of a path]`. A condition
 * is a property `when`, or a part of `all(…)`. Prints what caught each fault, and fails if a fault is neither caught nor listed in
 * kept-conditions.ts.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";
import { keptConditions } from "./kept-conditions.ts";
import { newScratch, ROOT, type Scratch, sourcesIn, testsNear } from "./mutants.ts";

/** These files define what a condition is. They send no condition, so nothing in them is dropped. */
const DEFINITIONS = /^shared\/db\/(expression|table|batch)\.ts$/;
/** The text before a condition in the copy, which gives it a number. */
const OPENINGS = {
  property: "numbered",
  shorthand: "when: numbered",
  part: "numbered",
  spread: "numberedAll",
} as const;
/** Number of test files that run first: those nearest to the changed file. The others run only if these pass. */
const NEAREST = 3;

interface Condition {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  /** The file, the beginning of the write or the line, and the part that is dropped. */
  readonly name: string;
  readonly kind: keyof typeof OPENINGS;
}
type Numbered = Condition & { readonly number: number };

/** Returns the end of the expression that begins at `start`: the position of the next comma or closing bracket outside of brackets. */
function endOf(source: string, start: number): number {
  let depth = 0;
  for (let at = start; at < source.length; at++) {
    const character = source.charAt(at);
    if ("\"'`".includes(character)) at = source.indexOf(character, at + 1);
    else if ("([{".includes(character)) depth++;
    else if (")]}".includes(character) && depth-- === 0) return at;
    else if (",;".includes(character) && depth === 0) return at;
  }
  return source.length;
}

function partsOf(source: string, start: number): (readonly [number, number])[] {
  const parts: (readonly [number, number])[] = [];
  for (let at = start; ; ) {
    const end = endOf(source, at);
    if (source.slice(at, end).trim() !== "") parts.push([end - source.slice(at, end).trimStart().length, end]);
    if (source.charAt(end) !== ",") return parts;
    at = end + 1;
  }
}

const OBJECT = /^\{\s*(\.\.\.|\w+[:,]| \w+ \})/;

/** Returns the beginning of the object literal that contains the position, or the line of the position. */
function placeOf(source: string, position: number): string {
  for (let at = position, depth = 0; at >= 0 && source.charAt(at) !== ";"; at--) {
    if (")]}".includes(source.charAt(at))) depth++;
    else if ("([{".includes(source.charAt(at)) && depth-- === 0) {
      depth = 0;
      if (OBJECT.test(source.slice(at, at + 100)))
        return source.slice(at, position).replaceAll(/\s+/g, " ").slice(0, 100).trim();
    }
  }
  return source.slice(source.lastIndexOf("\n", position) + 1, source.indexOf("\n", position)).trim();
}

export function conditionsIn(file: string): Condition[] {
  const source = readFileSync(join(ROOT, file), "utf8");
  const named = (start: number, end: number, kind: Condition["kind"]): Condition => {
    const text = source.slice(start, end).replaceAll(/\s+/g, " ").trim();
    return { file, start, end, kind, name: `${file} | ${placeOf(source, start)} | ${text}` };
  };
  const properties = [...source.matchAll(/(?<=[{,(]\s*|\n\s*)when(?:: |(?=[,]| \}(?! =)))/g)].flatMap(
    ({ index, 0: found }) => {
      if (found === "when") return [named(index, index + found.length, "shorthand")];
      const start = index + found.length;
      const end = endOf(source, start);
      return /^(Condition|typeof)/.test(source.slice(start, end)) ? [] : [named(start, end, "property")];
    },
  );
  const parts = [...source.matchAll(/(?<![.\w])all\((?=[^)])/g)].flatMap(({ index, 0: found }) => {
    const all = partsOf(source, index + found.length);
    return all.length < 2
      ? []
      : all.map(([start, end]) =>
          source.startsWith("...", start) ? named(start + 3, end, "spread") : named(start, end, "part"),
        );
  });
  return [...properties, ...parts];
}

/** Gives each condition of the copy its number. */
function numberAll(directory: string, conditions: readonly Numbered[]): void {
  for (const [file, own] of Map.groupBy(conditions, (condition) => condition.file)) {
    const edits = own.flatMap(({ number, start, end, kind }) => [
      // An outer condition opens before an inner one and closes after it.
      { at: start, rank: -end, text: `${OPENINGS[kind]}(${number}, ` },
      { at: end, rank: -start, text: ")" },
    ]);
    let source = readFileSync(join(ROOT, file), "utf8");
    // From the last one to the first, so that an edit moves no other one.
    for (const { at, text } of edits.sort((a, b) => b.at - a.at || b.rank - a.rank))
      source = source.slice(0, at) + text + source.slice(at);
    const dropping = relative(dirname(file), "test/power/dropping.ts");
    writeFileSync(join(directory, file), `${source}\nimport { numbered, numberedAll } from "${dropping}";\n`);
  }
  const path = join(directory, "shared/db/expression.ts");
  const source = readFileSync(path, "utf8").replace(
    /function compileCondition\(.*\{/,
    "$& condition = sent(condition);",
  );
  writeFileSync(path, `${source}\nimport { sent } from "./dropping.ts";\n`);
}

/** Drops the conditions in one process that runs the laws. Calls `print` with each number and the law that has failed. */
async function catchByLaws(
  directory: string,
  conditions: readonly Numbered[],
  print: (number: number, by: string) => void,
): Promise<void> {
  const options = ["test/power/dropped-laws.ts", ...conditions.map(({ number }) => `${number}`)];
  const child = spawn(process.execPath, options, {
    cwd: directory,
    env: { ...process.env, LOG_LEVEL: "error" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  for await (const line of createInterface({ input: child.stdout })) {
    const [, number, by = ""] = /^dropped (\d+) ?(.*)$/.exec(line) ?? [];
    if (number !== undefined) print(Number(number), by);
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`the laws ended with ${code}`);
}

/** Added to a file that vitest loads before each test file of the copy. */
const recorder = (log: string): string => `
import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, expect } from "vitest";
import { dropping } from "./dropping.ts";
beforeAll(() => dropping.sent.clear());
afterAll(() => appendFileSync("${log}", JSON.stringify([expect.getState().testPath, ...dropping.sent]) + "\\n"));
`;

const Sent = z.tuple([z.string()], z.number());

/** Returns the test files that send a condition: first those of its room, and first those that send the fewest conditions. */
async function sendersOf(scratch: Scratch, conditions: Iterable<Numbered>): Promise<(of: Numbered) => string[]> {
  const log = join(scratch.directory, "sent.log");
  const setup = join(scratch.directory, "test/harness/seed.ts");
  const kept = readFileSync(setup, "utf8");
  writeFileSync(setup, `${kept}${recorder(log)}`);
  const tests = new Set([...conditions].flatMap(({ file }) => testsNear(file)));
  const failed = await scratch.failures([...tests].filter((test) => !/power\/conditions|\.api\./.test(test)));
  if (failed.length > 0) throw new Error(`a test fails although no condition is dropped: ${failed}`);
  writeFileSync(setup, kept);
  const sent = readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .map((line) => Sent.parse(JSON.parse(line)))
    .sort((a, b) => a.length - b.length);
  return ({ number, file }) => {
    const [, room = ""] = file.split("/");
    const tests = sent.filter((line) => line.includes(number)).map(([test]) => relative(scratch.directory, test));
    const { own = [], others = [] } = Object.groupBy(tests, (test) => (test.split("/")[1] === room ? "own" : "others"));
    return [...own, ...others];
  };
}

/**
 * Runs test files without a condition each. All of them run in one process of vitest: each is a copy of the test file that drops its condition
 * first. Returns the failed test of each condition that a test notices.
 */
async function catchByTests(
  scratch: Scratch,
  wanted: readonly (readonly [Numbered, readonly string[]])[],
): Promise<Map<number, string>> {
  const copies = wanted.flatMap(([{ number }, tests]) =>
    tests.map((test) => {
      const copy = test.replace(/\.test\.ts$/, `.without-${number}.test.ts`);
      const dropping = relative(dirname(test), "test/power/dropping.ts");
      const drop = [
        `import { beforeAll as beforeDropping } from "vitest"; import { dropping as here } from "./${dropping}";`,
        `const dropHere = () => { here.number = ${number}; }; dropHere(); beforeDropping(dropHere);`,
      ].join(" ");
      writeFileSync(join(scratch.directory, copy), `${drop}\n${readFileSync(join(scratch.directory, test), "utf8")}`);
      return copy;
    }),
  );
  const failed = copies.length === 0 ? [] : await scratch.failures(copies);
  for (const copy of copies) rmSync(join(scratch.directory, copy));
  return new Map(
    failed.flatMap((name) => {
      // The failure of a whole file shows nothing about its tests.
      const [, number] = /\.without-(\d+)\.test\.ts > /.exec(name) ?? [];
      return number === undefined ? [] : [[Number(number), name] as const];
    }),
  );
}

/**
 * `only` is a part of the name. Without `--near`, only the laws run. With `--whole`, only whole conditions are dropped, and no parts of them.
 */
export async function dropConditions(args: readonly string[]): Promise<boolean> {
  const [only = ""] = args.filter((arg) => !arg.startsWith("--"));
  const all = sourcesIn("shared")
    .filter((file) => !DEFINITIONS.test(file))
    .flatMap(conditionsIn)
    .map((condition, number) => ({ ...condition, number }));
  const chosen = all.filter(
    ({ name, kind }) => name.includes(only) && (!args.includes("--whole") || /^(property|shorthand)$/.test(kind)),
  );
  const survivors = new Set(chosen);
  const caught = (condition: Numbered, by: string | undefined) => {
    if (by === undefined) return;
    survivors.delete(condition);
    console.log(`${condition.name}\n  caught by ${by}`);
    if (condition.name in keptConditions) console.log("  Remove it from kept-conditions.ts.");
  };
  const scratch = newScratch();
  try {
    numberAll(scratch.directory, all);
    await catchByLaws(scratch.directory, chosen, (number, by) => {
      for (const condition of chosen) if (condition.number === number && by !== "") caught(condition, by);
    });
    for (const condition of survivors) {
      const reason = keptConditions[condition.name];
      if (reason === undefined) continue;
      console.log(`${condition.name}\n  kept: ${reason}`);
      survivors.delete(condition);
    }
    if (args.includes("--near") && survivors.size > 0) {
      const senders = await sendersOf(scratch, survivors);
      for (const [from, to] of [
        [0, NEAREST],
        [NEAREST, Number.POSITIVE_INFINITY],
      ]) {
        const wanted = [...survivors].map((one) => [one, senders(one).slice(from, to)] as const);
        const failed = await catchByTests(scratch, wanted);
        for (const [condition] of wanted) caught(condition, failed.get(condition.number));
      }
    }
  } finally {
    scratch.remove();
  }
  for (const { name } of survivors) console.log(`MISSED ${name}`);
  console.log(`${chosen.length} conditions, ${survivors.size} missed`);
  return survivors.size === 0;
}
