/** Finds each condition of a write: a property `when`, or a part of `all(…)`. A fault replaces it by one that always holds. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "rolldown/utils";
import { type Fault, ROOT, sourcesIn } from "./mutants.ts";

/** These files define what a condition is. They send no condition, so nothing in them is dropped. */
const DEFINITIONS = /^shared\/db\/(expression|table|batch)\.ts$/;
/** A ConditionCheck of DynamoDB must have a condition. */
const HOLDS = '{ op: "OR", parts: [{ op: "missing", field: "pk" }, { op: "exists", field: "pk" }] }';

/** Returns a fault for each condition in a file. Its name has the beginning of the object or statement that contains the condition. */
function conditionsIn(file: string): Fault[] {
  const source = readFileSync(join(ROOT, file), "utf8");
  const found: Fault[] = [];
  const oneLine = (start: number, end: number): string => source.slice(start, end).replaceAll(/\s+/g, " ").trim();
  const begins: number[] = [];
  const drop = (start: number, end: number, before = "", after = "") => {
    const place = oneLine(begins.at(-1) ?? 0, start)
      .slice(0, 100)
      .trim();
    found.push({ name: `${file} | ${place} | ${oneLine(start, end)}`, file, start, end, to: before + HOLDS + after });
  };
  const enter = ({ start }: { start: number }) => void begins.push(start);
  const leave = () => void begins.pop();
  new Visitor({
    ObjectExpression: enter,
    "ObjectExpression:exit": leave,
    VariableDeclaration: enter,
    "VariableDeclaration:exit": leave,
    ReturnStatement: enter,
    "ReturnStatement:exit": leave,
    Property({ key, value, shorthand }) {
      if (key.type !== "Identifier" || key.name !== "when" || value.type.endsWith("Pattern")) return;
      drop(value.start, value.end, shorthand ? "when: " : "");
    },
    CallExpression({ callee, arguments: parts }) {
      if (callee.type !== "Identifier" || callee.name !== "all" || parts.length < 2) return;
      for (const { type, start, end } of parts) {
        if (type === "SpreadElement") drop(start, end, "...[", "]");
        else drop(start, end);
      }
    },
  }).visit(parseSync(file, source).program);
  return found;
}

export const conditions = (): Fault[] =>
  sourcesIn("shared")
    .filter((file) => !DEFINITIONS.test(file))
    .flatMap(conditionsIn);
