/** The responses that API Gateway sends without invoking a function: its own errors, and CORS preflights. */
import { problemBody, problems } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import type { ProblemCode } from "#shared/problem.ts";
import type { Method } from "../routes/route.ts";

/** A method that a path can have. For HEAD, API Gateway invokes the function of GET and omits the body. */
export type PathMethod = Method | "HEAD";

type Texts = Readonly<Record<string, string>>;

interface GatewayProblem {
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly headers?: Texts;
  readonly variables?: Texts;
}

const problem = (code: ProblemCode, detail: string, more: Partial<GatewayProblem> = {}): GatewayProblem => ({
  status: problems[code].status,
  code,
  detail,
  ...more,
});

/** One second is enough, because API Gateway's throttles are limits per second. */
const RETRY_AFTER = { "Retry-After": "1" } as const;
/** This header forbids caches to store an error. The functions send the same header (shared/http/answer.ts). */
const NOT_STORED = { "Cache-Control": "no-store" } as const;
/** The header of the response to a request without a token. For this case, RFC 6750 requires a challenge without an error code. */
const CHALLENGE = { "WWW-Authenticate": "Bearer" } as const;

const noRoute = problem("not_found", "No route of the API has this path.");
const fault = problem("internal", problems.internal.title);
const noCaller = problem(
  "unauthenticated",
  "The access token or API key is missing or malformed, or its user is unknown or disabled.",
  { headers: CHALLENGE },
);
/** The authorizer denies only requests with a refused token (shared/auth/authorizer.ts), so the response to a denied request is 401. */
const refusedToken = problem("unauthenticated", "The access token was refused ($context.authorizer.reason).", {
  variables: { "WWW-Authenticate": "context.authorizer.challenge" },
});
const unverified = problem("unavailable", problems.unavailable.title, { headers: RETRY_AFTER });
const forbidden = problem("permission_denied", "The request was refused.");

/** A form arrives as base64 in an event of at most 6 MB, so a CSV file may have only 4 MB. docs/csv.md has API Gateway's own limit. */
export const TOO_LARGE_DETAIL =
  `The request is too large. A JSON body may hold at most ${limits.bodyBytes} bytes, a CSV file in a form at most ` +
  `${limits.importBytes}. For larger files make an import job: POST /api/prospects/imports.`;

/** API Gateway does not say what it cannot read, so the text names all parts that can be wrong. */
const UNREADABLE =
  "The request could not be read. Use a method of HTTP, such as GET, POST, PUT, PATCH or DELETE. In the path and the query, write " +
  "each % as %25, and use % otherwise only before two hexadecimal digits of a UTF-8 character. " +
  "Send the header Host, and each header in the form that HTTP requires.";

/** An entry for each error type of API Gateway. For a type without an entry, API Gateway would send its own body. */
const gatewayProblems: Readonly<Record<string, GatewayProblem>> = {
  ACCESS_DENIED: refusedToken,
  API_CONFIGURATION_ERROR: fault,
  // The authorizer has failed, so the token may be valid. A 401 would sign the user out.
  AUTHORIZER_CONFIGURATION_ERROR: unverified,
  AUTHORIZER_FAILURE: unverified,
  BAD_REQUEST_BODY: problem("validation_failed", "The body of the request is not valid."),
  BAD_REQUEST_PARAMETERS: problem("validation_failed", UNREADABLE),
  DEFAULT_4XX: problem("validation_failed", UNREADABLE),
  DEFAULT_5XX: fault,
  EXPIRED_TOKEN: noCaller,
  INTEGRATION_FAILURE: problem("internal", problems.internal.title, { status: 502 }),
  INTEGRATION_TIMEOUT: problem("unavailable", "The request took too long.", { status: 504 }),
  // The authorizer's API key is missing only while a deployment is incomplete.
  INVALID_API_KEY: unverified,
  INVALID_SIGNATURE: noCaller,
  // API Gateway uses this error type for a path without a route.
  MISSING_AUTHENTICATION_TOKEN: noRoute,
  QUOTA_EXCEEDED: problem("rate_limited", "The quota is used up.", { headers: RETRY_AFTER }),
  REQUEST_TOO_LARGE: problem("payload_too_large", TOO_LARGE_DETAIL),
  RESOURCE_NOT_FOUND: noRoute,
  THROTTLED: problem("rate_limited", "Too many requests at once.", { headers: RETRY_AFTER }),
  UNAUTHORIZED: noCaller,
  UNSUPPORTED_MEDIA_TYPE: problem("unsupported_media_type", "This route does not accept the media type."),
  WAF_FILTERED: forbidden,
};

export function gatewayResponses(allowedOrigins: readonly string[]): Record<string, object> {
  const entries = Object.entries(gatewayProblems).map(([type, problem]) => {
    const headers = { ...NOT_STORED, ...problem.headers, ...originHeaders(allowedOrigins), ...exposed(allowedOrigins) };
    const response = {
      statusCode: String(problem.status),
      responseParameters: {
        "gatewayresponse.header.X-Request-Id": "context.requestId",
        ...named("gatewayresponse.header.", problem.variables ?? {}),
        ...named("gatewayresponse.header.", literals(headers)),
      },
      responseTemplates: { "application/problem+json": problemTemplate(problem) },
    };
    return [type, response] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns the body of an error. API Gateway replaces the variables, for example `$context.requestId`. */
const problemTemplate = ({ status, code, detail }: GatewayProblem): string =>
  JSON.stringify({ ...problemBody(code, detail, "$context.requestId", []), status });

/** Answers a preflight by a mock integration, without a function. A preflight has no `Content-Type`, so a template for JSON is enough. */
export function preflight(methods: readonly PathMethod[], allowedOrigins: readonly string[]): object {
  const headers = { ...methodHeaders(methods), ...originHeaders(allowedOrigins) };
  const declared = ["X-Request-Id", ...Object.keys(headers)].map((name) => [name, { schema: { type: "string" } }]);
  return {
    // Declare the headers, because an integration may set only declared ones.
    responses: { 204: { description: "204", headers: Object.fromEntries(declared) } },
    "x-amazon-apigateway-integration": {
      type: "mock",
      passthroughBehavior: "never",
      // Convert the body to text, because JSON is a binary media type of the API, and a template cannot read a binary body.
      contentHandling: "CONVERT_TO_TEXT",
      requestTemplates: { "application/json": JSON.stringify({ statusCode: 204 }) },
      responses: {
        default: {
          statusCode: "204",
          responseParameters: {
            "method.response.header.X-Request-Id": "context.requestId",
            ...named("method.response.header.", literals(headers)),
          },
          responseTemplates: { "application/json": "" },
        },
      },
    },
  };
}

/** Browsers may cache a preflight for ten minutes, so a removed origin can call the API for as long. */
const methodHeaders = (methods: readonly PathMethod[]) => ({
  "Access-Control-Allow-Methods": methods.join(","),
  "Access-Control-Allow-Headers": "Authorization,Content-Type,Idempotency-Key,If-None-Match",
  "Access-Control-Max-Age": "600",
});

/** Returns the CORS headers of fixed responses. Several origins become `*`, which is harmless: these responses contain no data of users. */
function originHeaders(allowedOrigins: readonly string[]): Record<string, string> {
  const [first, ...more] = allowedOrigins;
  if (first === undefined) return {};
  return { "Access-Control-Allow-Origin": more.length === 0 ? first : "*", Vary: "Origin" };
}

/** Allows web pages to read these headers of an error. By default, browsers hide these headers from web pages. */
const exposed = ([origin]: readonly string[]): Texts =>
  origin === undefined ? {} : { "Access-Control-Expose-Headers": "Retry-After, WWW-Authenticate, X-Request-Id" };

/** Quotes the values, because API Gateway treats only a quoted value as a literal. */
const literals = (headers: Texts): Texts =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, `'${value}'`]));

const named = (prefix: string, headers: Texts): Texts =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, value]));
