/**
 * Validates the path, query and body of a request with their schemas. Each fault contains a JSON pointer or a parameter name for the faulty
 * value, and the reason.
 */
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import { messageOf } from "#shared/http/fault-messages.ts";
import type { Fault } from "#shared/problem.ts";

z.config({ localeError: messageOf });

/** Maximum number of faults in a response. Twenty are enough to correct a form, and the response to a hostile body stays small. */
const MAX_FAULTS = 20;
/** Maximum number of faults that the `detail` of a response repeats. */
const DETAILED_FAULTS = 3;

export type Part = "body" | "path" | "query";

/** Validates the path, the query or the body of a request. If it is invalid, throws `validation_failed` with its faults. */
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
  return { parameter: String(issue.path[0] ?? ""), code, message };
}

/** Returns the JSON pointer (RFC 6901) to the faulty value. An empty pointer means the whole body. */
function pointer(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
