/** Validates the path, query and body of a request. Each fault names the value and the reason. */
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import type { Contract } from "#shared/http/contract.ts";
import { nearestOf } from "#shared/nearest.ts";
import type { Fault } from "#shared/problem.ts";

/** Maximum number of faults in a response, so that the response to a body with very many faults stays small. */
const MAX_FAULTS = 20;
const DETAILED_FAULTS = 3;

export type Part = "body" | "path" | "query";

export function validate<S extends z.ZodMiniType>(part: Part, schema: S, value: unknown): z.output<S> {
  const parsed = z.safeParse(schema, value);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.slice(0, MAX_FAULTS).map((issue) => fault(part, issue));
  throw new ApiError("validation_failed", detailOf(part, faults), { faults });
}

function detailOf(part: Part, faults: readonly Fault[]): string {
  const texts = faults
    .slice(0, DETAILED_FAULTS)
    .map(({ pointer, parameter = pointer, message }) => (parameter ? `${parameter}: ${message}` : `it ${message}`));
  return `The ${part} of the request is not valid: ${texts.join("; ").replace(/\.$/, "")}.`;
}

function fault(part: Part, issue: z.core.$ZodIssue): Fault {
  const { code, message } = issue;
  if (part === "body") return { pointer: pointer(issue.path), code, message };
  return { parameter: issue.path.slice(0, 1).join(), code, message };
}

/** A JSON pointer (RFC 6901). An empty pointer means the whole body. */
function pointer(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Maximum number of unknown parameters that an error names, and maximum characters of each name. */
const [NAMED, NAME] = [10, 64];

export const parameterNames = ({ query, ignoredQuery = [] }: Pick<Contract, "query" | "ignoredQuery">): string[] => [
  ...Object.keys(query instanceof z.ZodMiniObject ? query.shape : {}),
  ...ignoredQuery,
];

/**
 * Throws `validation_failed` for unknown names, because a list with a misspelt filter would contain all records. Clients may send any name
 * that begins with `_`, for example to bypass a cache.
 */
export function requireKnown(sent: Iterable<string>, known: readonly string[]): void {
  const unknown = [...sent].filter((name) => !name.startsWith("_") && !known.includes(name));
  if (unknown.length === 0) return;
  const faults = unknown.slice(0, NAMED).map((name) => {
    const parameter = [...name].slice(0, NAME).join("");
    return { parameter, code: "unknown_parameter", message: `is not known${helpFor(parameter, known)}` };
  });
  const texts = faults.map(({ parameter, message }) => `${parameter} ${message}`.replace(/\.$/, "")).join("; ");
  const detail = `The query of the request is not valid: ${texts}`;
  throw new ApiError("validation_failed", detail.endsWith("?") ? detail : `${detail}.`, { faults });
}

/** Suggests a known name that is similar, or that begins with the unknown one: `tagId` for `tag`. */
function helpFor(name: string, known: readonly string[]): string {
  const begun = (other: string): boolean => name.length > 2 && other.toLowerCase().startsWith(name.toLowerCase());
  const similar = nearestOf(name, known) ?? known.find(begun);
  if (similar !== undefined) return `. Did you mean ${similar}?`;
  const nearest = nearestOf(name, known, Number.POSITIVE_INFINITY);
  return nearest === undefined ? "" : `. The nearest known name is ${nearest}.`;
}

const nouns: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a text",
};

const units: Readonly<Record<string, string>> = { array: "item", string: "character" };

const formats: Readonly<Record<string, string>> = {
  datetime: "a time such as 2026-06-01T15:00:00.000Z",
  email: "a valid e-mail address",
  url: "a valid URL",
};

/** Returns the message of a fault, without the name of the faulty value. A schema with its own message does not use this function. */
function messageOf(issue: z.core.$ZodRawIssue): string {
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

z.config({ localeError: messageOf });
