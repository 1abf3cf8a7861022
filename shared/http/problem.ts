/** Errors of the interface: a closed list of codes, one class, one body (RFC 9457). */
import * as z from "zod/mini";
import { named } from "#shared/schema.ts";

/** The closed list. Nothing else ever leaves the service as an error. */
export const ProblemCode = z.enum([
  "validation_failed",
  "malformed_json",
  "unauthenticated",
  "permission_denied",
  "not_found",
  "method_not_allowed",
  "conflict",
  "payload_too_large",
  "unsupported_media_type",
  "idempotency_mismatch",
  "rate_limited",
  "internal",
  "unavailable",
]);
export type ProblemCode = z.infer<typeof ProblemCode>;

export const problems: Record<ProblemCode, { readonly status: number; readonly title: string }> = {
  validation_failed: { status: 400, title: "The request is not valid" },
  malformed_json: { status: 400, title: "The body is not valid JSON" },
  unauthenticated: { status: 401, title: "A valid access token is required" },
  permission_denied: { status: 403, title: "You may not do this" },
  not_found: { status: 404, title: "There is no such resource" },
  method_not_allowed: { status: 405, title: "This method is not available here" },
  conflict: { status: 409, title: "The request conflicts with the present state" },
  payload_too_large: { status: 413, title: "The request is too large" },
  unsupported_media_type: { status: 415, title: "The body has another media type than this takes" },
  idempotency_mismatch: { status: 422, title: "This idempotency key was used with another request" },
  rate_limited: { status: 429, title: "Too many requests" },
  internal: { status: 500, title: "Something went wrong on our side" },
  unavailable: { status: 503, title: "The service is not available right now" },
};

/** One fault: where (a JSON pointer into the body or path, or a query parameter), what and why. */
export const Fault = z.object({
  pointer: z.optional(z.string()),
  parameter: z.optional(z.string()),
  code: z.string(),
  message: z.string(),
});
export type Fault = z.infer<typeof Fault>;

export const Problem = named(
  "Problem",
  z.object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: ProblemCode,
    requestId: z.string(),
    errors: z.array(Fault),
  }),
  "Every error of the service (RFC 9457).",
);
export type Problem = z.infer<typeof Problem>;

/** What a handler or domain function throws when the caller is at fault or must wait. */
export class ApiError extends Error {
  readonly code: ProblemCode;
  readonly faults: readonly Fault[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    options: { faults?: readonly Fault[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause });
    this.name = "ApiError";
    this.code = code;
    this.faults = options.faults ?? [];
    this.headers = options.headers ?? {};
  }
}

export const notFound = (what: string): ApiError => new ApiError("not_found", `There is no such ${what}.`);

/** Each of these body fields names something that does not exist in the caller's company (or is inactive; which of the two is not told). */
export const badReference = (...fields: readonly string[]): ApiError =>
  new ApiError("validation_failed", `${fields.join(", ")}: names nothing that can be used.`, {
    faults: fields.map((field) => ({
      pointer: `/${field}`,
      code: "invalid_reference",
      message: "names nothing that can be used",
    })),
  });

export function problemBody(code: ProblemCode, detail: string, requestId: string, faults: readonly Fault[]): Problem {
  const { status, title } = problems[code];
  return { type: `urn:problem:${code}`, title, status, detail, code, requestId, errors: [...faults] };
}
