/** Implements the filters of event sources, which choose the records that a function gets. */
import * as z from "zod/mini";
import { LocalError } from "../servers/error.ts";
import type { Mapping } from "../template/stack.ts";

type Matches = (value: unknown) => boolean;

const Fields = z.record(z.string(), z.unknown());
/** A type guard without zod, because a zod schema would copy each stream record with its old and new item. */
const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const Rule = z.union([
  z.strictObject({ exists: z.boolean() }),
  z.strictObject({ prefix: z.string() }),
  z.strictObject({ "anything-but": z.array(z.unknown()) }),
]);

/** Returns a test that a record passes if a pattern matches it. Throws a LocalError if a pattern has an operator that is not supported. */
export function createFilter(id: string, criteria: Mapping["FilterCriteria"]): Matches {
  if (criteria === undefined) return () => true;
  const patterns = criteria.Filters.map(({ Pattern }) => {
    const pattern: unknown = JSON.parse(Pattern);
    return compile(id, pattern);
  });
  return (record) => patterns.some((matches) => matches(record));
}

function compile(id: string, pattern: unknown): Matches {
  if (Array.isArray(pattern)) {
    const choices = pattern.map((choice: unknown) => compileChoice(id, choice));
    return (value) => choices.some((matches) => matches(value));
  }
  const fields = Object.entries(z.parse(Fields, pattern)).map(([name, part]) => [name, compile(id, part)] as const);
  return (value) => {
    const found = isFields(value) ? value : {};
    return fields.every(([name, matches]) => matches(Object.hasOwn(found, name) ? found[name] : undefined));
  };
}

function compileChoice(id: string, choice: unknown): Matches {
  if (typeof choice !== "object" || choice === null) return (value) => value === choice;
  const rule = z.safeParse(Rule, choice);
  if (!rule.success)
    throw new LocalError(`${id}.FilterCriteria: ${JSON.stringify(choice)} is not supported by the local runtime`);
  const { data } = rule;
  if ("exists" in data) return (value) => (value !== undefined) === data.exists;
  if ("prefix" in data) return (value) => typeof value === "string" && value.startsWith(data.prefix);
  return (value) => value !== undefined && !data["anything-but"].includes(value);
}
