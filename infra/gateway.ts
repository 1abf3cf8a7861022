/** What API Gateway answers without a function: its own errors, wrong methods and CORS preflights. */
import {
  CfnGatewayResponse,
  type IntegrationOptions,
  type IResource,
  MockIntegration,
  PassthroughBehavior,
  type RestApi,
} from "aws-cdk-lib/aws-apigateway";
import { gatewayProblems, methodNotAllowed, problemTemplate } from "./gateway-problems.ts";
import type { Method } from "./routes.ts";

const quoted = (text: string): string => `'${text}'`;

/** A problem body, the request's id and the problem's own headers on every error of API Gateway. */
export function gatewayAnswers(api: RestApi, allowedOrigins: readonly string[]): void {
  for (const [type, problem] of Object.entries(gatewayProblems)) {
    const headers = { ...problem.headers, ...originHeaders(allowedOrigins) };
    const answer = new CfnGatewayResponse(api, type, {
      restApiId: api.restApiId,
      responseType: type,
      statusCode: String(problem.status),
      responseParameters: {
        "gatewayresponse.header.X-Request-Id": "context.requestId",
        ...prefixed("gatewayresponse.header.", headers),
      },
      responseTemplates: { "application/problem+json": problemTemplate(problem) },
    });
    api.latestDeployment?.node.addDependency(answer);
    api.latestDeployment?.addToLogicalId({ type, problem });
  }
}

/** Besides the routes' methods: OPTIONS where CORS is on, and 405 with `Allow` for all others. */
export function mockMethods(resource: IResource, methods: readonly Method[], allowedOrigins: readonly string[]): void {
  const allow = [...methods, ...(allowedOrigins.length === 0 ? [] : ["OPTIONS"])].join(", ");
  const headers = { Allow: allow, "Content-Type": "application/problem+json", ...originHeaders(allowedOrigins) };
  mock(resource, "ANY", { status: "405", headers, body: problemTemplate(methodNotAllowed) });
  if (allowedOrigins.length === 0) return;
  mock(resource, "OPTIONS", { status: "204", headers: { ...preflight(methods), ...originHeaders(allowedOrigins) } });
}

interface MockAnswer {
  readonly status: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
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

function mock(resource: IResource, method: "ANY" | "OPTIONS", { status, headers, body = "" }: MockAnswer): void {
  const request = JSON.stringify({ statusCode: Number(status) });
  const options: IntegrationOptions = {
    passthroughBehavior: PassthroughBehavior.NEVER,
    requestTemplates: Object.fromEntries(MOCKED_MEDIA_TYPES.map((type) => [type, request])),
    integrationResponses: [
      {
        statusCode: status,
        responseParameters: {
          "method.response.header.X-Request-Id": "context.requestId",
          ...prefixed("method.response.header.", headers),
        },
        responseTemplates: { "application/json": body },
      },
    ],
  };
  const names = ["X-Request-Id", ...Object.keys(headers)];
  resource.addMethod(method, new MockIntegration(options), {
    methodResponses: [
      {
        statusCode: status,
        responseParameters: Object.fromEntries(names.map((name) => [`method.response.header.${name}`, true])),
      },
    ],
  });
}

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

function prefixed(prefix: string, headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, quoted(value)]));
}
