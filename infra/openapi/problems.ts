/** Builds the error responses of the OpenAPI document. */

import { problemBody, problems } from "#shared/errors.ts";
import { type Fault, ProblemCode } from "#shared/problem.ts";
import type { JsonSchema } from "./portable.ts";

const text = { type: "string" } as const;

export const headers = {
  "X-Request-Id": { description: "The id of this request in the service's logs.", schema: text },
  "Idempotency-Replayed": { description: "`true` if the answer repeats an earlier one.", schema: text },
  Location: {
    description:
      "The path of the new record. With 302, the page to open. With 410, the path of the request that begins a new synchronization.",
    schema: text,
  },
  "Set-Cookie": { description: "A cookie of the console, or its removal.", schema: text },
  ETag: {
    description: "The tag of this answer, for `If-None-Match`.",
    schema: text,
  },
  "Content-Disposition": { description: "Marks the answer as a file, and names it.", schema: text },
  "Retry-After": { description: "Seconds to wait.", schema: { type: "integer", format: "int64", minimum: 0 } },
  "WWW-Authenticate": {
    description:
      '`Bearer` if the request has no token or the user is not active. Otherwise `Bearer error="invalid_token", error_description="…"` with one of the reasons expired, not yet valid, malformed, signature not verified, wrong issuer, wrong audience, not an access token.',
    schema: text,
  },
} as const satisfies Record<string, JsonSchema>;

const refTo = (...names: readonly (keyof typeof headers)[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** Error statuses that every route may return: too many requests, faults of the service, and faults of API Gateway. */
const always = [429, 500, 502, 503, 504] as const;

export const problemReferences = (statuses: readonly number[]): Record<string, JsonSchema> =>
  Object.fromEntries(
    [...statuses, ...always].map((status) => [status, { $ref: `#/components/responses/Problem${status}` }]),
  );

/** Error statuses that only API Gateway itself returns. */
const ofGateway: readonly (readonly [number, ProblemCode])[] = [
  [502, "internal"],
  [504, "unavailable"],
];

const requestId = "2f1d6a0e-9d0c-4f6e-8a53-0c6f4b1d7e21";
/** The descriptions of statuses with more than one usual cause. */
const descriptions: Readonly<Record<number, string>> = {
  400: "A value of the request is not valid, or the query has an unknown parameter.",
};
const exampleFaults: Partial<Record<ProblemCode, readonly Fault[]>> = {
  validation_failed: [
    {
      pointer: "/lat",
      code: "too_big",
      message: "must be a latitude from -90 to 90 degrees (a longitude may be in its place), and is 91",
    },
    { parameter: "stauts", code: "unknown_parameter", message: "is not known. Did you mean status?" },
  ],
};

/** Returns the error response of each status. 405 is omitted, because only methods that the document does not contain get it. */
export function problemResponses(): Record<string, JsonSchema> {
  const codes = new Map<number, ProblemCode>(ofGateway);
  for (const code of ProblemCode.options) {
    const { status } = problems[code];
    if (status !== 405 && !codes.has(status)) codes.set(status, code);
  }
  const responses = [...codes].sort(([a], [b]) => a - b);
  return Object.fromEntries(responses.map(([status, code]) => [`Problem${status}`, response(status, code)]));
}

function response(status: number, code: ProblemCode): JsonSchema {
  const { title } = problems[code];
  // A 409 has `Retry-After` for the code `request_in_progress`: an earlier request with the same Idempotency-Key is still running.
  const retry = [409, 429, 503].includes(status) ? refTo("Retry-After") : {};
  const challenge = status === 401 ? refTo("WWW-Authenticate") : {};
  const anew = status === 410 ? refTo("Location") : {};
  const example = { ...problemBody(code, `${title}.`, requestId, exampleFaults[code] ?? []), status };
  return {
    description: descriptions[status] ?? title,
    headers: { ...refTo("X-Request-Id"), ...retry, ...challenge, ...anew },
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" }, example } },
  };
}
