/** What API Gateway answers without a function: its own errors and CORS preflights. */
import { gatewayProblems, problemTemplate } from "./gateway-problems.ts";
import type { Method } from "./routes/route.ts";

type Texts = Readonly<Record<string, string>>;

const quoted = (text: string): string => `'${text}'`;

/** A problem body, the request's id and the problem's own headers on every error of API Gateway, by its response type. */
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

/**
 * The answer to a browser's preflight, by a mock: no function runs for it. It has neither body nor media type, and a mock takes
 * that for JSON.
 */
export function preflight(methods: readonly Method[], allowedOrigins: readonly string[]): object {
  const headers = { ...allowing(methods), ...originHeaders(allowedOrigins) };
  const declared = ["X-Request-Id", ...Object.keys(headers)].map((name) => [name, { schema: { type: "string" } }]);
  return {
    // An integration may set only the headers that its operation declares.
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

/** Browsers may keep a preflight for ten minutes; Chromium's own limit is two hours. */
const allowing = (methods: readonly Method[]) => ({
  "Access-Control-Allow-Methods": methods.join(","),
  "Access-Control-Allow-Headers": "Authorization,Content-Type,Idempotency-Key",
  "Access-Control-Max-Age": "600",
});

/**
 * A static answer cannot pick one of several origins. `*` then lets any page ask; what a function answers is still
 * readable only by the configured origins, and no cookie is ever involved.
 */
function originHeaders(allowedOrigins: readonly string[]): Record<string, string> {
  const [first, ...more] = allowedOrigins;
  if (first === undefined) return {};
  return { "Access-Control-Allow-Origin": more.length === 0 ? first : "*", Vary: "Origin" };
}

function prefixed(prefix: string, headers: Texts): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, quoted(value)]));
}
