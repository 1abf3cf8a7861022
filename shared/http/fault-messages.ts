/** The messages about values that do not match a schema. A schema may have its own message, which then takes precedence. */
import type * as z from "zod/mini";

/** The noun for a value of each type in a message. */
const nouns: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a text",
};

/** The unit in which a message counts the size of a value of each type. */
const units: Readonly<Record<string, string>> = { array: "item", string: "character" };

const formats: Readonly<Record<string, string>> = {
  datetime: "a time such as 2026-06-01T15:00:00.000Z",
  email: "a valid e-mail address",
  url: "a valid URL",
};

type Issue = z.core.$ZodRawIssue;

/** Returns a text that continues the name of the faulty value, such as `must be a number`. */
export function messageOf(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is required" : `must be ${nouns[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.join(", ")}`;
    case "too_small":
      return bound(issue.origin, `${issue.exact ? "exactly" : "at least"} ${issue.minimum}`, issue.minimum);
    case "too_big":
      return bound(issue.origin, `${issue.exact ? "exactly" : "at most"} ${issue.maximum}`, issue.maximum);
    case "invalid_format":
      return `must be ${formats[issue.format] ?? `in the format ${issue.pattern ?? issue.format}`}`;
    case "unrecognized_keys":
      return `must not have ${issue.keys.join(", ")}`;
    default:
      return "does not have an accepted form";
  }
}

function bound(origin: string, limit: string, count: number | bigint): string {
  const unit = units[origin];
  return unit === undefined ? `must be ${limit}` : `must have ${limit} ${unit}${Number(count) === 1 ? "" : "s"}`;
}
