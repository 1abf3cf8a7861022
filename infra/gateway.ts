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

/**
 * For all methods but the routes': 405 with `Allow`, and where CORS is on the answer to a preflight. One method of API Gateway
 * gives both: a stack holds 500 resources, and one more for each path would be a tenth of them.
 */
export function mockMethods(resource: IResource, methods: readonly Method[], allowedOrigins: readonly string[]): void {
  const isCors = allowedOrigins.length > 0;
  const allow = [...methods, ...(isCors ? ["OPTIONS"] : [])].join(", ");
  const headers = { Allow: allow, "Content-Type": "application/problem+json", ...originHeaders(allowedOrigins) };
  const refusal: MockAnswer = { status: 405, headers, body: problemTemplate(methodNotAllowed) };
  const leave: MockAnswer = {
    status: 204,
    headers: { ...preflight(methods), ...originHeaders(allowedOrigins) },
    body: "",
  };
  mockAny(resource, refusal, isCors ? leave : undefined);
}

interface MockAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
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

function mockAny(resource: IResource, otherwise: MockAnswer, toOptions: MockAnswer | undefined): void {
  const request =
    toOptions === undefined
      ? statusTemplate(otherwise)
      : `#if($context.httpMethod == "OPTIONS")${statusTemplate(toOptions)}#else${statusTemplate(otherwise)}#end`;
  const answers = [otherwise, ...(toOptions === undefined ? [] : [toOptions])];
  const options: IntegrationOptions = {
    passthroughBehavior: PassthroughBehavior.NEVER,
    requestTemplates: Object.fromEntries(MOCKED_MEDIA_TYPES.map((type) => [type, request])),
    integrationResponses: answers.map(({ status, headers, body }) => ({
      statusCode: String(status),
      // The answer without a pattern is the one for every other status.
      ...(status !== otherwise.status && { selectionPattern: String(status) }),
      responseParameters: {
        "method.response.header.X-Request-Id": "context.requestId",
        ...prefixed("method.response.header.", headers),
      },
      responseTemplates: { "application/json": body },
    })),
  };
  resource.addMethod("ANY", new MockIntegration(options), {
    methodResponses: answers.map(({ status, headers }) => ({
      statusCode: String(status),
      responseParameters: Object.fromEntries(
        ["X-Request-Id", ...Object.keys(headers)].map((name) => [`method.response.header.${name}`, true]),
      ),
    })),
  });
}

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

function prefixed(prefix: string, headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, quoted(value)]));
}
