/** Answers the gateway makes itself: its errors by the template's gateway responses, and mock integrations. */
import * as z from "zod/mini";
import type { Method, Mock } from "./api-resources.ts";
import { LocalError } from "./error.ts";
import type { Stack } from "./stack.ts";

export interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | Uint8Array;
}

/** API Gateway's own status for each error that this gateway makes; a gateway response of the template may change it. */
const defaultStatus = {
  MISSING_AUTHENTICATION_TOKEN: 403,
  BAD_REQUEST_PARAMETERS: 400,
  BAD_REQUEST_BODY: 400,
  REQUEST_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  THROTTLED: 429,
  API_CONFIGURATION_ERROR: 500,
  INTEGRATION_FAILURE: 502,
  INTEGRATION_TIMEOUT: 504,
} as const;
export type GatewayError = keyof typeof defaultStatus;

export type GatewayErrors = (type: GatewayError, requestId: string) => Answer;

export function gatewayErrors({ gatewayResponses }: Stack): GatewayErrors {
  const byType = new Map(gatewayResponses.map((response) => [response.ResponseType, response]));
  for (const { id, ResponseTemplates, ResponseParameters } of gatewayResponses) {
    checkTexts(id, ResponseTemplates, ResponseParameters, "gatewayresponse.header.");
  }
  return (type, requestId) => {
    const fallback = defaultStatus[type] < 500 ? "DEFAULT_4XX" : "DEFAULT_5XX";
    const own = byType.get(type);
    const response = own ?? byType.get(fallback);
    const [[mediaType, template] = ["application/json", '{"message":null}']] = Object.entries(
      response?.ResponseTemplates ?? {},
    );
    // A default response keeps the error's own status unless it names one.
    const status = Number(response?.StatusCode ?? defaultStatus[type]);
    const parameters = headersOf(response?.ResponseParameters ?? {}, requestId);
    return { status, headers: withType(parameters, mediaType), body: render(template, requestId) };
  };
}

/** A mock integration answers by the verb and the content type of the request, or gives the gateway's error. */
export type MockAnswer = (verb: string, contentType: string | undefined, requestId: string) => Answer | GatewayError;

const StatusCode = z.object({ statusCode: z.union([z.int(), z.string()]) });

export function mockAnswer(id: string, method: Method & { Integration: Mock }): MockAnswer {
  const { RequestTemplates, IntegrationResponses, PassthroughBehavior } = method.Integration;
  const statusByType = new Map(
    Object.entries(RequestTemplates).map(([mediaType, template]) => [mediaType, statusByVerb(id, template)]),
  );
  for (const { SelectionPattern: pattern, StatusCode: status, ...response } of IntegrationResponses) {
    checkTexts(id, response.ResponseTemplates, response.ResponseParameters, "method.response.header.");
    if (pattern === undefined || pattern === status) continue;
    throw new LocalError(
      `${id}.Integration.IntegrationResponses: a selection pattern must be the response's own status`,
    );
  }
  return (verb, contentType, requestId) => {
    const mediaType = (contentType ?? "application/json").split(";")[0]?.trim().toLowerCase() ?? "";
    const status = statusByType.get(mediaType)?.(verb);
    const refuses = PassthroughBehavior !== "WHEN_NO_MATCH" && statusByType.size > 0;
    if (status === undefined) return refuses ? "UNSUPPORTED_MEDIA_TYPE" : "API_CONFIGURATION_ERROR";
    const response = IntegrationResponses.find(({ StatusCode }) => StatusCode === status);
    if (response === undefined) return "API_CONFIGURATION_ERROR";
    const [[type, template] = ["application/json", ""]] = Object.entries(response.ResponseTemplates);
    const headers = headersOf(response.ResponseParameters, requestId);
    const body = render(template, requestId);
    return { status: Number(status), headers: body === "" ? headers : withType(headers, type), body };
  };
}

/** `#if($context.httpMethod == "OPTIONS")…#else…#end`, or one status for every verb. */
function statusByVerb(id: string, template: string): (verb: string) => string {
  const [, verb, then, otherwise] = /^#if\(\$context\.httpMethod == "(\w+)"\)(.*)#else(.*)#end$/.exec(template) ?? [];
  if (verb === undefined || then === undefined || otherwise === undefined) {
    const status = statusOf(id, template);
    return () => status;
  }
  const [matching, other] = [statusOf(id, then), statusOf(id, otherwise)];
  return (asked) => (asked === verb ? matching : other);
}

function statusOf(id: string, template: string): string {
  // The template language allows bare keys, and the CDK writes `{ statusCode: 200 }`.
  const parsed = z.safeParse(StatusCode, parseJson(template.replace(/\bstatusCode\b(?!")/, '"statusCode"')));
  if (!parsed.success) {
    throw new LocalError(
      `${id}.Integration.RequestTemplates: only {"statusCode": N}, or two by the verb, is supported`,
    );
  }
  return String(parsed.data.statusCode);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Texts = Readonly<Record<string, string>>;

/** Of the template language only the request id is known here; of header mappings that and fixed texts. */
function checkTexts(id: string, templates: Texts, parameters: Texts, prefix: string): void {
  for (const template of Object.values(templates)) {
    if (/[$#]/.test(template.replaceAll("$context.requestId", ""))) {
      throw new LocalError(`${id}.ResponseTemplates: only $context.requestId is supported by the local runtime`);
    }
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (name.startsWith(prefix) && (value === "context.requestId" || /^'.*'$/.test(value))) continue;
    throw new LocalError(`${id}.ResponseParameters.${name}: this mapping is not supported by the local runtime`);
  }
}

const headersOf = (parameters: Texts, requestId: string): [string, string][] =>
  Object.entries(parameters).map(([name, value]) => [
    name.slice(name.indexOf(".header.") + ".header.".length),
    value === "context.requestId" ? requestId : value.slice(1, -1),
  ]);

function withType(headers: [string, string][], mediaType: string): [string, string][] {
  return headers.some(([name]) => name.toLowerCase() === "content-type")
    ? headers
    : [...headers, ["Content-Type", mediaType]];
}

const render = (template: string, requestId: string): string => template.replaceAll("$context.requestId", requestId);
