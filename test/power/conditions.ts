/**
 * Drops each condition of a write in turn, and runs the tests that should notice it: `npm run power -- conditions [part of a path]`. A
 * condition is a property `when`, or a part of `all(…)`. Prints what caught each fault, and fails if a fault is neither caught nor listed
 * in kept-conditions.ts.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { keptConditions } from "./kept-conditions.ts";
import { type Fault, newScratch, ROOT, sourcesIn, testsNear } from "./mutants.ts";

/** A condition that always holds. A check needs a condition, so none is left out. */
const HOLDS = `{ op: "OR", parts: [{ op: "missing", field: "pk" }, { op: "exists", field: "pk" }] } as const`;
/** They define conditions, and contain none. */
const DEFINITIONS = /^shared\/db\/(expression|table|batch)\.ts$/;
/** Test files beyond this number are not run: they import the file only through many others. */
const NEAREST = 6;

interface Dropped extends Fault {
  /** The line without its indentation, and the part that is dropped. */
  readonly name: string;
  readonly isPart: boolean;
}

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
    if (source.slice(at, end).trim() !== "") parts.push([at, end]);
    if (source.charAt(end) !== ",") return parts;
    at = end + 1;
  }
}

export function conditionsIn(file: string): Dropped[] {
  const source = readFileSync(join(ROOT, file), "utf8");
  const named = (start: number, end: number, to: string, isPart = false): Dropped => {
    const line = source.slice(source.lastIndexOf("\n", start) + 1, source.indexOf("\n", start)).trim();
    return {
      file,
      start,
      end,
      to,
      isPart,
      name: `${file} | ${line} | ${source.slice(start, end).trim().replaceAll(/\s+/g, " ")}`,
    };
  };
  const properties = [...source.matchAll(/(?<=[{,(]\s*|\n\s*)when(?:: |(?=[,]| \}(?! =)))/g)].flatMap(
    ({ index, 0: found }) => {
      const start = index + found.length;
      if (found === "when") return [named(index, index + 4, `when: ${HOLDS}`)];
      const end = endOf(source, start);
      return /^(Condition|typeof)/.test(source.slice(start, end)) ? [] : [named(start, end, HOLDS)];
    },
  );
  const parts = [...source.matchAll(/(?<![.\w])all\((?=[^)])/g)].flatMap(({ index, 0: found }) => {
    const all = partsOf(source, index + found.length);
    return all.length < 2
      ? []
      : all.map(([start, end]) =>
          named(start, end, /^\s*\.\.\./.test(source.slice(start, end)) ? "...[]" : HOLDS, true),
        );
  });
  return [...properties, ...parts];
}

/** The tests of the law that concern a file, by parts of its path. The first entry that fits counts. */
const LAWS: readonly (readonly [RegExp, string])[] = [
  [/prospects\/addresses/, "addresses|a prospect"],
  [/prospects\/references/, "names of"],
  [/shared\/prospects/, "one prospect|a prospect"],
  [/reference\/(change-user|invite|user)|shared\/auth/, "users|a record"],
  [/shared\/reference/, "names of|a record"],
  [/shared\/territories/, "territories|a record"],
  [/shared\/jobs/, "jobs|a record"],
  [/shared\/(company-index|http)/, "locks"],
  [/webhooks\/subscriptions/, "webhooks and|a webhook"],
  [/webhooks\/(events\/debounce|debounce-window|event-data)/, "debounce"],
  [/webhooks\/(events\/manual|expected)/, "manual"],
  [/webhooks\/(drain|deliver\/(paused|throttled|replay))/, "backlogs|replay|webhooks and"],
  [/shared\/webhooks/, "deliveries"],
];

function lawOf(file: string): { tests: string[]; named?: string } {
  const [, named] = LAWS.find(([path]) => path.test(file)) ?? [];
  return named === undefined ? { tests: [] } : { tests: ["test/power/conditions.test.ts"], named };
}

/** The test files that import the file, those with the fewest steps first. */
const near = (file: string): string[] =>
  testsNear(file)
    .filter((test) => !test.startsWith("test/power/") && !test.includes(".api."))
    .slice(0, NEAREST);

/**
 * `only` is a part of the path. Without `--near`, only the law runs. With `--whole`, only whole conditions are dropped, and no parts of them.
 */
export async function dropConditions(args: readonly string[]): Promise<boolean> {
  const [only = ""] = args.filter((arg) => !arg.startsWith("--"));
  const conditions = sourcesIn("shared")
    .filter((file) => !DEFINITIONS.test(file))
    .flatMap(conditionsIn)
    .filter(({ name, isPart }) => name.includes(only) && !(isPart && args.includes("--whole")));
  const scratch = newScratch();
  let missed = 0;
  try {
    for (const [number, condition] of conditions.entries()) {
      const { tests, named } = lawOf(condition.file);
      let by = await scratch.caught(condition, tests, named);
      if (args.includes("--near")) by ??= await scratch.caught(condition, near(condition.file));
      const kept = keptConditions[condition.name];
      if (by === undefined && kept === undefined) missed++;
      const result = by === undefined ? (kept === undefined ? "MISSED" : `kept: ${kept}`) : `caught by ${by}`;
      console.log(`${number + 1}/${conditions.length} ${condition.name}\n  ${result}`);
    }
  } finally {
    scratch.remove();
  }
  console.log(`${conditions.length} conditions, ${missed} missed`);
  return missed === 0;
}
