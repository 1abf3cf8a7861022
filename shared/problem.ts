/** The body of every error response (RFC 9457). Functions import only types of this file, so no bundle contains the schema. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { Id, named } from "#shared/schema.ts";

/** Clients may rely on this list of error codes, so adding a code is a change of the API. */
export const ProblemCode = z.enum([
  "validation_failed",
  "malformed_json",
  "unauthenticated",
  "permission_denied",
  "insufficient_scope",
  "not_found",
  "method_not_allowed",
  "conflict",
  "count_mismatch",
  "request_in_progress",
  "payload_too_large",
  "unsupported_media_type",
  "idempotency_mismatch",
  "rate_limited",
  "internal",
  "unavailable",
  "sync_reset_required",
]);
export type ProblemCode = z.infer<typeof ProblemCode>;

export const Fault = named(
  "Fault",
  z.object({
    pointer: z.optional(z.string()),
    parameter: z.optional(z.string()),
    code: z.string(),
    message: z.string(),
  }),
  "One fault in a request.",
);
export type Fault = z.infer<typeof Fault>;

/* @__PURE__ */ explain([Fault], () => ({
  fields: {
    pointer: "A JSON pointer to the wrong field of the body.",
    parameter: "The name of the wrong parameter of the path, the query or the headers.",
    code: "The kind of the fault, for programs.",
    message: "An explanation of the fault, for people.",
  },
}));

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
    actualCount: z.optional(z.int()),
    reason: z.optional(z.string()),
    ids: z.optional(z.array(Id)),
    existingId: z.optional(Id),
  }),
  "Every error of the service (RFC 9457).",
);
export type Problem = z.infer<typeof Problem>;

export type ProblemMembers = Pick<Problem, "actualCount" | "reason" | "ids" | "existingId">;

/* @__PURE__ */ explain([Problem], () => ({
  fields: {
    type: "A URN that ends with the code.",
    status: "The HTTP status.",
    detail: "What happened, for people.",
    code: "What happened, for programs. Handle a code that you do not know by its status.",
    requestId: "The same as `X-Request-Id`.",
    actualCount: "With the code `count_mismatch`: the number of records that the request would change.",
    reason: "Only with `sync_reset_required`: why the client must begin anew.",
    ids: `With \`conflict\` of a request with \`matchBy\`: the prospects that have the key, at most ${limits.conflictingIds}.`,
    existingId:
      "With `conflict` because of a `clientRecordId`: the prospect that has it. Absent if the caller does not see this prospect.",
    errors: "Each fault: a JSON pointer into the body or the name of a parameter, a code and a message.",
  },
}));
