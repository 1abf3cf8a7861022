/**
 * The conditions that a user edits for a webhook registration, and `filterOf`, which makes a filter for the API from the conditions. A
 * filter compares a field with one value, with several values, or with null.
 */
import type { EventType } from "canvassing-client/api";

interface Operator {
  readonly label: string;
  /** The kind of the value that the user types. Undefined if the operator needs none. */
  readonly takes: "text" | "texts" | "number" | "numbers" | undefined;
  /** Returns the value of the filter. Returns undefined if the user has not typed a complete one. */
  readonly value: (typed: string) => unknown;
}

const partsOf = (typed: string): string[] =>
  typed
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

function numberIn(typed: string): number | undefined {
  const number = Number(typed);
  return typed.trim() !== "" && Number.isFinite(number) ? number : undefined;
}

/** Returns the list. Returns undefined if the list is empty or contains undefined, because the user has then not finished typing. */
const complete = (list: readonly unknown[]): readonly unknown[] | undefined =>
  list.length > 0 && !list.includes(undefined) ? list : undefined;

export const operators = {
  is: { label: "is", takes: "text", value: (typed) => typed.trim() || undefined },
  any: { label: "is any of", takes: "texts", value: (typed) => complete(partsOf(typed)) },
  number: { label: "is the number", takes: "number", value: numberIn },
  anyNumber: {
    label: "is any of the numbers",
    takes: "numbers",
    value: (typed) => complete(partsOf(typed).map(numberIn)),
  },
  yes: { label: "is true", takes: undefined, value: () => true },
  no: { label: "is false", takes: undefined, value: () => false },
  empty: { label: "is empty", takes: undefined, value: () => null },
} as const satisfies Readonly<Record<string, Operator>>;
export type OperatorName = keyof typeof operators;

export const operatorNames = Object.keys(operators).filter((name): name is OperatorName => name in operators);

export interface Condition {
  readonly path: string;
  readonly operator: OperatorName;
  readonly typed: string;
}

/** Returns the conditions as one text, for a draft: the JSON of a condition on each line. `conditionsIn` reads it. */
export const conditionsText = (conditions: readonly Condition[]): string =>
  conditions.map(({ path, operator, typed }) => JSON.stringify([path, operator, typed])).join("\n");

export const conditionsIn = (text: string): readonly Condition[] =>
  text.split("\n").flatMap((line) => {
    const parts: unknown = line === "" ? [] : JSON.parse(line);
    const [path = "", name, typed = ""] = Array.isArray(parts) ? parts.map(String) : [];
    const operator = operatorNames.find((one) => one === name);
    return operator === undefined ? [] : [{ path, operator, typed }];
  });

export interface Built {
  /** Null if no condition is complete. A registration with the filter null gets every event of its type. */
  readonly filter: Record<string, unknown> | null;
  /** What the user must still do. Undefined if the conditions can be saved. */
  readonly fault: string | undefined;
}

export function filterOf(conditions: readonly Condition[]): Built {
  const filter: Record<string, unknown> = {};
  let fault: string | undefined;
  for (const { path, operator, typed } of conditions) {
    const name = path.trim();
    const value = operators[operator].value(typed);
    if (name === "" || value === undefined) fault ??= "A condition is not complete.";
    else if (Object.hasOwn(filter, name)) fault ??= `There are two conditions on ${name}. Use “is any of”.`;
    else filter[name] = value;
  }
  return { filter: Object.keys(filter).length === 0 ? null : filter, fault };
}

/**
 * Returns the conditions from which `filterOf` makes the filter. Returns undefined if no conditions make exactly this filter, for example
 * if it compares a field with a string and a number. The dialog cannot edit such a filter.
 */
export function conditionsOf(filter: Readonly<Record<string, unknown>> | null): readonly Condition[] | undefined {
  if (filter === null) return [];
  const flat = flattened(filter);
  const conditions = flat.map(([path, value]) => ({ path, ...operatorOf(value) }));
  const built = filterOf(conditions);
  const isSame = JSON.stringify(Object.entries(built.filter ?? {})) === JSON.stringify(flat);
  return built.fault === undefined && isSame ? conditions : undefined;
}

/** Returns the paths and values of a filter that may be nested: `{a: {b: 1}}` has the path `a.b`. */
const flattened = (filter: Readonly<Record<string, unknown>>): (readonly [path: string, value: unknown])[] =>
  Object.entries(filter).flatMap(([key, value]) =>
    isObject(value) && Object.keys(value).length > 0
      ? flattened(value).map(([path, inner]) => [`${key}.${path}`, inner] as const)
      : [[key, value] as const],
  );

function operatorOf(value: unknown): Pick<Condition, "operator" | "typed"> {
  if (value === null) return { operator: "empty", typed: "" };
  if (typeof value === "boolean") return { operator: value ? "yes" : "no", typed: "" };
  if (typeof value === "number") return { operator: "number", typed: String(value) };
  if (!Array.isArray(value)) return { operator: "is", typed: String(value) };
  return { operator: value.every((one) => typeof one === "number") ? "anyNumber" : "any", typed: value.join(", ") };
}

/** Maximum number of keys in a suggested path. For example, `a.b.c.d` has four keys. The API accepts at most five. */
const SUGGESTED_DEPTH = 4;

/** Returns the paths of all strings, numbers and booleans in the data of an event, according to its JSON Schema. */
export function pathsIn(schema: EventType["schema"]): string[] {
  const paths = new Set<string>();
  collect(schema, [], paths);
  return [...paths].sort();
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function collect(schema: unknown, path: readonly string[], paths: Set<string>): void {
  if (!isObject(schema)) return;
  if (Array.isArray(schema.anyOf)) for (const one of schema.anyOf) collect(one, path, paths);
  if (isObject(schema.properties)) {
    if (path.length === SUGGESTED_DEPTH) return;
    for (const [name, inner] of Object.entries(schema.properties)) collect(inner, [...path, name], paths);
  } else if (["string", "number", "integer", "boolean"].some((type) => type === schema.type)) {
    paths.add(path.join("."));
  }
}
