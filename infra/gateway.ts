/** What API Gateway answers without a function: its own errors, wrong methods and CORS preflights. */
import { gatewayProblems, methodNotAllowed, problemTemplate } from "./gateway-problems.ts";
import type { Method } from "./routes.ts";

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
 * For all methods but the routes': 405 with `Allow`, and where CORS is on the answer to a preflight. One operation of the
 * definition gives both.
 */
export function otherMethods(methods: readonly Method[], allowedOrigins: readonly string[]): object {
  const isCors = allowedOrigins.length > 0;
  const allow = [...methods, ...(isCors ? ["OPTIONS"] : [])].join(", ");
  const headers = { Allow: allow, "Content-Type": "application/problem+json", ...originHeaders(allowedOrigins) };
  const refusal: MockAnswer = { status: 405, headers, body: problemTemplate(methodNotAllowed) };
  const leave: MockAnswer = {
    status: 204,
    headers: { ...preflight(methods), ...originHeaders(allowedOrigins) },
    body: "",
  };
  return mock(refusal, isCors ? leave : undefined);
}

interface MockAnswer {
  readonly status: number;
  readonly headers: Texts;
  readonly body: string;
}

/**
 * A mock picks its request template by the exact media type and answers 415 when it has none: these are the types that
 * a client may send by mistake to a path of this service.
 */
const MOCKED_MEDIA_TYPES = [
  "application/json",
  "application/problem+json",
  "application/merge-patch+json",
  "application/octet-stream",
  "application/x-www-form-urlencoded",
  "application/xml",
  "multipart/form-data",
  "text/csv",
  "text/plain",
] as const;

function mock(otherwise: MockAnswer, toOptions: MockAnswer | undefined): object {
  const request =
    toOptions === undefined
      ? statusTemplate(otherwise)
      : `#if($context.httpMethod == "OPTIONS")${statusTemplate(toOptions)}#else${statusTemplate(otherwise)}#end`;
  const answers = [otherwise, ...(toOptions === undefined ? [] : [toOptions])];
  return {
    responses: Object.fromEntries(answers.map((answer) => [String(answer.status), declared(answer)])),
    "x-amazon-apigateway-integration": {
      type: "mock",
      passthroughBehavior: "never",
      requestTemplates: Object.fromEntries(MOCKED_MEDIA_TYPES.map((type) => [type, request])),
      // The key is the pattern that the status has to match; `default` takes every other one.
      responses: Object.fromEntries(
        answers.map((answer) => [answer === otherwise ? "default" : String(answer.status), given(answer)]),
      ),
    },
  };
}

/** An integration may set only the headers that its operation declares. */
const declared = ({ status, headers }: MockAnswer): object => ({
  description: String(status),
  headers: Object.fromEntries(
    ["X-Request-Id", ...Object.keys(headers)].map((name) => [name, { schema: { type: "string" } }]),
  ),
});

const given = ({ status, headers, body }: MockAnswer): object => ({
  statusCode: String(status),
  responseParameters: {
    "method.response.header.X-Request-Id": "context.requestId",
    ...prefixed("method.response.header.", headers),
  },
  responseTemplates: { "application/json": body },
});

const statusTemplate = ({ status }: MockAnswer): string => JSON.stringify({ statusCode: status });

/** Browsers may keep a preflight for ten minutes; Chromium's own limit is two hours. */
const preflight = (methods: readonly Method[]) => ({
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
