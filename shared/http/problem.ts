/** The problem body of an error response (RFC 9457), with the status and title of each code. */
import type { Fault, Problem, ProblemCode } from "#shared/problem.ts";

export const problems: Record<ProblemCode, { readonly status: number; readonly title: string }> = {
  validation_failed: { status: 400, title: "The request is not valid" },
  malformed_json: { status: 400, title: "The body is not valid JSON" },
  unauthenticated: { status: 401, title: "A valid access token is required" },
  permission_denied: { status: 403, title: "You may not do this" },
  not_found: { status: 404, title: "There is no such resource" },
  method_not_allowed: { status: 405, title: "This method is not available here" },
  conflict: { status: 409, title: "The request conflicts with the current state" },
  count_mismatch: { status: 409, title: "The number of records is not the expected one" },
  request_in_progress: { status: 409, title: "An earlier request with this idempotency key is still running" },
  payload_too_large: { status: 413, title: "The request is too large" },
  unsupported_media_type: { status: 415, title: "The endpoint does not accept this media type" },
  idempotency_mismatch: { status: 422, title: "This idempotency key was used with another request" },
  rate_limited: { status: 429, title: "Too many requests" },
  internal: { status: 500, title: "Something went wrong on our side" },
  unavailable: { status: 503, title: "The service is not available right now" },
  sync_reset_required: { status: 410, title: "The client must begin its synchronization anew" },
};

export function problemBody(code: ProblemCode, detail: string, requestId: string, faults: readonly Fault[]): Problem {
  const { status, title } = problems[code];
  return { type: `urn:problem:${code}`, title, status, detail, code, requestId, errors: [...faults] };
}
