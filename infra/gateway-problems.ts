/** The problems that API Gateway answers itself, without any function, in the words of the service. */

import type { ProblemCode } from "#shared/errors.ts";
import { problems } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";

export interface GatewayProblem {
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const problem = (code: ProblemCode, detail: string, more: Partial<GatewayProblem> = {}): GatewayProblem => ({
  status: problems[code].status,
  code,
  detail,
  ...more,
});

/** Throttling refills every second; there are no usage plans, so a quota is only named for completeness. */
const RETRY_AFTER = { "Retry-After": "1" } as const;
const CHALLENGE = { "WWW-Authenticate": "Bearer" } as const;

const noRoute = problem("not_found", "There is nothing at this path.");
const fault = problem("internal", problems.internal.title);
const badToken = problem("unauthenticated", "The access token is missing or not valid.", { headers: CHALLENGE });
const unverified = problem("unavailable", problems.unavailable.title, { headers: RETRY_AFTER });
const forbidden = problem("permission_denied", "The request was refused.");

/**
 * One text for all routes. API Gateway takes 10 MB, but an event of Lambda holds 6 MB: it refuses a body between the two
 * before any function sees it, a form from about 4.4 MB on because it travels as base64.
 */
const TOO_LARGE =
  `The request is too large. A JSON body may hold at most ${limits.bodyBytes} bytes, a CSV file in a form at most ` +
  `${limits.importBytes}. For larger files make an import job: POST /api/prospects/imports.`;

/** Every response type of API Gateway, so that none falls back to its own body. */
export const gatewayProblems: Readonly<Record<string, GatewayProblem>> = {
  ACCESS_DENIED: forbidden,
  API_CONFIGURATION_ERROR: fault,
  // The authorizer failed, and nobody can tell whether the token is good: not 401, which would sign users out.
  AUTHORIZER_CONFIGURATION_ERROR: unverified,
  AUTHORIZER_FAILURE: unverified,
  BAD_REQUEST_BODY: problem("validation_failed", "The body of the request is not valid."),
  BAD_REQUEST_PARAMETERS: problem("validation_failed", "The parameters of the request are not valid."),
  DEFAULT_4XX: problem("validation_failed", "The request could not be read."),
  DEFAULT_5XX: fault,
  EXPIRED_TOKEN: badToken,
  INTEGRATION_FAILURE: problem("internal", problems.internal.title, { status: 502 }),
  INTEGRATION_TIMEOUT: problem("unavailable", "The request took too long.", { status: 504 }),
  INVALID_API_KEY: forbidden,
  INVALID_SIGNATURE: badToken,
  // API Gateway's name for a path that no route has.
  MISSING_AUTHENTICATION_TOKEN: noRoute,
  QUOTA_EXCEEDED: problem("rate_limited", "The quota is used up.", { headers: RETRY_AFTER }),
  REQUEST_TOO_LARGE: problem("payload_too_large", TOO_LARGE),
  RESOURCE_NOT_FOUND: noRoute,
  THROTTLED: problem("rate_limited", "Too many requests at once.", { headers: RETRY_AFTER }),
  UNAUTHORIZED: badToken,
  UNSUPPORTED_MEDIA_TYPE: problem("unsupported_media_type", "This media type is not accepted here."),
  WAF_FILTERED: forbidden,
};

/** Body template. Its only variable is the id of the request. */
export function problemTemplate({ status, code, detail }: GatewayProblem): string {
  const { title } = problems[code];
  return JSON.stringify({
    type: `urn:problem:${code}`,
    title,
    status,
    detail,
    code,
    requestId: "$context.requestId",
    errors: [],
  });
}
