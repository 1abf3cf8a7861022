/**
 * Replaces the condition of a write by one that always holds, and expects that a test fails. A condition is a property `when`, or an
 * argument of `all(…)`. All replacements are in one copy of the service, where an environment variable chooses one of them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "rolldown/utils";
import * as z from "zod";
import {
  copyOfService,
  countMissed,
  firstFailure,
  ROOT,
  sourcesIn,
  type Tests,
  testsOfFiles,
  vitest,
} from "./mutants.ts";

/** Files in which no condition is replaced, because they define conditions and contain no write. */
const DEFINITIONS = /^shared\/db\/(expression|table|batch)\.ts$/;
/** A condition that always holds. Removing a condition is not enough, because a ConditionCheck of DynamoDB must have a condition. */
const HOLDS = '{ op: "OR", parts: [{ op: "missing", field: "pk" }, { op: "exists", field: "pk" }] }';

interface Condition {
  /** Three parts: the file, the beginning of the object or statement that contains the condition, and the text of the condition. */
  readonly name: string;
  /** The file and the position of the condition. The name is no id, because two conditions may have the same name. */
  readonly id: string;
  readonly file: string;
  readonly start: number;
  readonly end: number;
  /** The text before the choice between the condition and `holds` in the copy: `when: ` for the shorthand `when`, otherwise empty. */
  readonly before: string;
  readonly holds: string;
}

function conditionsIn(file: string): Condition[] {
  const source = readFileSync(join(ROOT, file), "utf8");
  const found: Condition[] = [];
  const oneLine = (start: number, end: number): string => source.slice(start, end).replaceAll(/\s+/g, " ").trim();
  const begins: number[] = [];
  const add = (start: number, end: number, { skip = 0, before = "", holds = HOLDS } = {}) => {
    const place = oneLine(begins.at(-1) ?? 0, start)
      .slice(0, 100)
      .trim();
    const name = `${file} | ${place} | ${oneLine(start, end)}`;
    found.push({ name, id: `${file}:${start}`, file, start: start + skip, end, before, holds });
  };
  const enter = ({ start }: { start: number }) => void begins.push(start);
  const leave = () => void begins.pop();
  /** The positions of names in destructuring patterns, where `when` is no condition. */
  const names = new Set<number>();
  new Visitor({
    ObjectPattern: ({ properties }) => {
      for (const { start } of properties) names.add(start);
    },
    ObjectExpression: enter,
    "ObjectExpression:exit": leave,
    VariableDeclaration: enter,
    "VariableDeclaration:exit": leave,
    ReturnStatement: enter,
    "ReturnStatement:exit": leave,
    Property({ key, value, shorthand, start }) {
      if (key.type !== "Identifier" || key.name !== "when" || names.has(start)) return;
      add(value.start, value.end, { before: shorthand ? "when: " : "" });
    },
    CallExpression({ callee, arguments: parts }) {
      if (callee.type !== "Identifier" || callee.name !== "all" || parts.length < 2) return;
      for (const { type, start, end } of parts) {
        add(start, end, type === "SpreadElement" ? { skip: "...".length, holds: `[${HOLDS}]` } : {});
      }
    },
  }).visit(parseSync(file, source).program);
  return found;
}

export const conditions = (): Condition[] =>
  sourcesIn("shared")
    .filter((file) => !DEFINITIONS.test(file))
    .flatMap(conditionsIn);

/**
 * The code of a module that only the copy of the service has. It says whether a condition is replaced, and records the conditions that the
 * running test has evaluated.
 */
const SWITCH = `/** Chooses the condition that is dropped. */
export const reached = new Set();
export const isDropped = (id) => reached.add(id) && id === process.env.DROPPED;
`;
/** Code for the copy. After each test, it writes a line with the conditions that the test has evaluated. */
const RECORDER = `
import { appendFileSync } from "node:fs";
import { afterEach as afterEachOne } from "vitest";
import { reached } from "#shared/dropped.ts";
afterEachOne(({ task: { name, file } }) => {
  const line = JSON.stringify({ file: file.name, name, reached: [...reached] });
  if (process.env.REACHED !== undefined) appendFileSync(process.env.REACHED, line + "\\n");
  reached.clear();
});
`;
/**
 * A unit test for the copy. It runs all laws of laws.ts, because `missedConditions` runs only unit tests, and some laws otherwise run only
 * in a deep test.
 */
const LAWS = "test/power/all-laws.test.ts";
const ALL_LAWS = `/** Runs all laws. */
import { laws, testLaws } from "./laws.ts";
testLaws("writes", laws);
`;

/** Returns the source with a choice between each condition and its replacement. A condition may contain other conditions. */
function withChoices(source: string, all: readonly Condition[]): string {
  const begins = all.map(({ id, start, end, before, holds }) => {
    const text = `${before}(isDropped(${JSON.stringify(id)}) ? ${holds} : `;
    return { at: start, inner: -end, text };
  });
  const ends = all.map(({ start, end }) => ({ at: end, inner: -start - source.length, text: ")" }));
  const inserted = [...begins, ...ends].toSorted((a, b) => a.at - b.at || a.inner - b.inner);
  let from = 0;
  const parts = inserted.map(({ at, text }) => {
    const part = source.slice(from, at) + text;
    from = at;
    return part;
  });
  return `${parts.join("")}${source.slice(from)}\nimport { isDropped } from "#shared/dropped.ts";\n`;
}

function copyWithChoices(): string {
  const directory = copyOfService();
  writeFileSync(join(directory, "shared/dropped.ts"), SWITCH);
  writeFileSync(join(directory, "test/harness/seed.ts"), RECORDER, { flag: "a" });
  writeFileSync(join(directory, LAWS), ALL_LAWS);
  for (const [file, all] of Map.groupBy(conditions(), (condition) => condition.file)) {
    writeFileSync(join(directory, file), withChoices(readFileSync(join(ROOT, file), "utf8"), all));
  }
  return directory;
}

const Reached = z.object({ file: z.string(), name: z.string(), reached: z.array(z.string()) });
type Reached = z.infer<typeof Reached>;

/** Returns which conditions each unit test evaluates. */
async function reachedIn(directory: string): Promise<Reached[]> {
  const file = join(directory, "reached.jsonl");
  const { code, output } = await vitest(directory, ["--project", "unit"], { REACHED: file });
  if (code !== 0) throw new Error(`without a fault, the tests fail:\n${output.slice(-3_000)}`);
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => Reached.parse(JSON.parse(line)));
}

const chosenOf = (tests: readonly Reached[]): Tests => ({
  files: [...new Set(tests.map(({ file }) => file))],
  names: [...new Set(tests.map(({ name }) => name))],
});

/**
 * Replaces each condition in turn, and runs tests until one fails: first the laws that evaluate the condition, then other unit tests that
 * evaluate it, and at last all tests that can notice a fault in the condition's file. The last step finds a test that fails because an
 * earlier test has evaluated the condition. Returns the number of conditions without which all tests pass.
 */
export async function missedConditions(dropped: readonly Condition[]): Promise<number> {
  const directory = copyWithChoices();
  const tests = await reachedIn(directory);
  const testsOf = testsOfFiles();
  return countMissed(dropped, ({ id, file }) => {
    const reaching = tests.filter(({ reached }) => reached.includes(id));
    const { laws = [], others = [] } = Object.groupBy(reaching, (test) => (test.file === LAWS ? "laws" : "others"));
    const steps = [chosenOf(laws), chosenOf(others), { files: testsOf(file) }];
    return firstFailure(directory, steps, { DROPPED: id });
  });
}
