/**
 * The answers that API Gateway gives without a function. They are its own errors, as problem bodies, and the answers to CORS preflights.
 */
import type { ProblemCode } from "#shared/errors.ts";
import { problems } from "#shared/http/problem.ts";
import * as limits from "#shared/limits.ts";
import type { Method } from "./routes/route.ts";

type Texts = Readonly<Record<string, string>>;

interface GatewayProblem {
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly headers?: Texts;
}

const problem = (code: ProblemCode, detail: string, more: Partial<GatewayProblem> = {}): GatewayProblem => ({
  status: problems[code].status,
  code,
  detail,
  ...more,
});

/**
 * The throttle refills every second, so a client may retry after one second. There are no usage plans, so API Gateway never reports an
 * exceeded quota.
 */
const RETRY_AFTER = { "Retry-After": "1" } as const;
const CHALLENGE = { "WWW-Authenticate": "Bearer" } as const;

const noRoute = problem("not_found", "No route of the API has this path.");
const fault = problem("internal", problems.internal.title);
const badToken = problem("unauthenticated", "The access token is missing or not valid.", { headers: CHALLENGE });
const unverified = problem("unavailable", problems.unavailable.title, { headers: RETRY_AFTER });
const forbidden = problem("permission_denied", "The request was refused.");

/**
 * The text of the error 413 for all routes. API Gateway accepts bodies of up to 10 MB, but the event of a function holds at most 6 MB, and
 * API Gateway refuses a body between the two limits before it calls a function. A form may have only about 4.4 MB, because its body
 * becomes base64.
 */
const TOO_LARGE =
  `The request is too large. A JSON body may hold at most ${limits.bodyBytes} bytes, a CSV file in a form at most ` +
  `${limits.importBytes}. For larger files make an import job: POST /api/prospects/imports.`;

/** The problem for each response type of API Gateway. Every type needs an entry, because API Gateway would otherwise use its own body. */
const gatewayProblems: Readonly<Record<string, GatewayProblem>> = {
  ACCESS_DENIED: forbidden,
  API_CONFIGURATION_ERROR: fault,
  // The authorizer failed, so the token may be valid. The answer 401 would sign users out.
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
  // API Gateway uses this response type for a path that no route has.
  MISSING_AUTHENTICATION_TOKEN: noRoute,
  QUOTA_EXCEEDED: problem("rate_limited", "The quota is used up.", { headers: RETRY_AFTER }),
  REQUEST_TOO_LARGE: problem("payload_too_large", TOO_LARGE),
  RESOURCE_NOT_FOUND: noRoute,
  THROTTLED: problem("rate_limited", "Too many requests at once.", { headers: RETRY_AFTER }),
  UNAUTHORIZED: badToken,
  UNSUPPORTED_MEDIA_TYPE: problem("unsupported_media_type", "This route does not accept the media type."),
  WAF_FILTERED: forbidden,
};

/** Returns the gateway responses by response type. Each has a problem body, the request's id and the headers of the problem. */
export function gatewayResponses(allowedOrigins: readonly string[]): Record<string, object> {
  const entries = Object.entries(gatewayProblems).map(([type, problem]) => {
    const headers = { ...problem.headers, ...originHeaders(allowedOrigins) };
    const response = {
      statusCode: String(problem.status),
      responseParameters: {
        "gatewayresponse.header.X-Request-Id": "context.requestId",
        ...prefixed("gatewayresponse.header.", headers),
      },
      responseTemplates: { "application/problem+json": problemTemplate(problem) },
    };
    return [type, response] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns a body template of API Gateway. Its only variable is the request's id. */
function problemTemplate({ status, code, detail }: GatewayProblem): string {
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

/**
 * Answers a browser's preflight with a mock, so that no function is called. A preflight has neither a body nor a media type, and the mock
 * treats it as JSON.
 */
export function preflight(methods: readonly Method[], allowedOrigins: readonly string[]): object {
  const headers = { ...methodHeaders(methods), ...originHeaders(allowedOrigins) };
  const declared = ["X-Request-Id", ...Object.keys(headers)].map((name) => [name, { schema: { type: "string" } }]);
  return {
    // Declare the headers, because an integration can set only headers that its operation declares.
    responses: { 204: { description: "204", headers: Object.fromEntries(declared) } },
    "x-amazon-apigateway-integration": {
      type: "mock",
      passthroughBehavior: "never",
      requestTemplates: { "application/json": JSON.stringify({ statusCode: 204 }) },
      responses: {
        default: {
          statusCode: "204",
          responseParameters: {
            "method.response.header.X-Request-Id": "context.requestId",
            ...prefixed("method.response.header.", headers),
          },
          responseTemplates: { "application/json": "" },
        },
      },
    },
  };
}

/** Browsers may cache a preflight for ten minutes. Chromium never caches one for more than two hours. */
const methodHeaders = (methods: readonly Method[]) => ({
  "Access-Control-Allow-Methods": methods.join(","),
  "Access-Control-Allow-Headers": "Authorization,Content-Type,Idempotency-Key",
  "Access-Control-Max-Age": "600",
});

/**
 * Returns the headers that name the allowed origins. A static answer cannot choose one of several origins, so it contains `*` if there are
 * several. This is safe, because only the configured origins can read the answers of functions, and because the API uses no cookies.
 */
function originHeaders(allowedOrigins: readonly string[]): Record<string, string> {
  const [first, ...more] = allowedOrigins;
  if (first === undefined) return {};
  return { "Access-Control-Allow-Origin": more.length === 0 ? first : "*", Vary: "Origin" };
}

/** Puts the values into single quotes, because API Gateway treats a quoted value as a literal. */
function prefixed(prefix: string, headers: Texts): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, `'${value}'`]));
}
