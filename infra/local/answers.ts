/**
 * Builds the responses that API Gateway sends without calling a function: errors and fixed responses (mock integrations). It also
 * compresses responses as API Gateway does.
 */
import { promisify } from "node:util";
import { deflate, gzip } from "node:zlib";
import * as z from "zod/mini";
import type { Api, ApiMethod, MockIntegration } from "./api-definition.ts";
import { LocalError } from "./error.ts";

export interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | Uint8Array;
}

/** The default status of each error type of API Gateway. A gateway response in the template may define a different status. */
const defaultStatus = {
  UNAUTHORIZED: 401,
  ACCESS_DENIED: 403,
  AUTHORIZER_FAILURE: 500,
  AUTHORIZER_CONFIGURATION_ERROR: 500,
  MISSING_AUTHENTICATION_TOKEN: 403,
  INVALID_API_KEY: 403,
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

/**
 * Builds the response for an error. `authorizer` is the context that the authorizer function returned. It is undefined if the error
 * occurred before the authorizer function returned.
 */
export type GatewayErrors = (
  type: GatewayError,
  requestId: string,
  authorizer?: Readonly<Record<string, string | number>>,
) => Answer;

export function gatewayErrors({ gatewayResponses }: Api): GatewayErrors {
  for (const [type, { responseTemplates, responseParameters }] of Object.entries(gatewayResponses)) {
    // Only the response for ACCESS_DENIED may use the authorizer's variables. Other errors can occur before the authorizer returns, and the
    // variables would then have no values.
    const variables = type === "ACCESS_DENIED" ? AFTER_AUTHORIZER : REQUEST_ID;
    checkTexts(type, responseTemplates, responseParameters, "gatewayresponse.header.", variables);
  }
  return (type, requestId, authorizer = {}) => {
    const variables = new Map([
      ["context.requestId", requestId],
      ...Object.entries(authorizer).map(([name, value]) => [`context.authorizer.${name}`, `${value}`] as const),
    ]);
    const fallback = defaultStatus[type] < 500 ? "DEFAULT_4XX" : "DEFAULT_5XX";
    const response = gatewayResponses[type] ?? gatewayResponses[fallback];
    const [[mediaType, template] = ["application/json", '{"message":null}']] = Object.entries(
      response?.responseTemplates ?? {},
    );
    // DEFAULT_4XX and DEFAULT_5XX define the response for many error types. If such a definition has no `statusCode`, each error type keeps
    // its status from `defaultStatus`.
    const status = Number(response?.statusCode ?? defaultStatus[type]);
    const parameters = headersOf(response?.responseParameters ?? {}, variables);
    return { status, headers: withType(parameters, mediaType), body: render(template, variables) };
  };
}

/**
 * Builds the response of a mock integration for a request with this content type. Returns an error type if the integration cannot respond
 * to this content type.
 */
export type MockAnswer = (contentType: string | undefined, requestId: string) => Answer | GatewayError;

const StatusCode = z.object({ statusCode: z.union([z.int(), z.string()]) });

export function mockAnswer({ name }: ApiMethod, integration: MockIntegration): MockAnswer {
  const { requestTemplates, responses, passthroughBehavior } = integration;
  const statusByType = new Map(
    Object.entries(requestTemplates).map(([mediaType, template]) => [mediaType, statusOf(name, template)]),
  );
  for (const [pattern, { statusCode, responseTemplates, responseParameters }] of Object.entries(responses)) {
    checkTexts(name, responseTemplates, responseParameters, "method.response.header.", REQUEST_ID);
    if (pattern === "default" || pattern === statusCode) continue;
    throw new LocalError(`${name}: the pattern of a mock's response must be default or the response's own status`);
  }
  return (contentType, requestId) => {
    const mediaType = (contentType ?? "application/json").split(";")[0]?.trim().toLowerCase() ?? "";
    const status = statusByType.get(mediaType);
    const refuses = passthroughBehavior !== "when_no_match" && statusByType.size > 0;
    if (status === undefined) return refuses ? "UNSUPPORTED_MEDIA_TYPE" : "API_CONFIGURATION_ERROR";
    const response = responses[status] ?? responses.default;
    if (response === undefined) return "API_CONFIGURATION_ERROR";
    const [[type, template] = ["application/json", ""]] = Object.entries(response.responseTemplates);
    const variables = new Map([["context.requestId", requestId]]);
    const headers = headersOf(response.responseParameters, variables);
    const body = render(template, variables);
    const { statusCode } = response;
    return { status: Number(statusCode), headers: body === "" ? headers : withType(headers, type), body };
  };
}

function statusOf(id: string, template: string): string {
  // API Gateway accepts a key without quotes, and the CDK writes `{ statusCode: 200 }`. JSON.parse needs quotes, so they are added here.
  const parsed = z.safeParse(StatusCode, parseJson(template.replace(/\bstatusCode\b(?!")/, '"statusCode"')));
  if (!parsed.success) {
    throw new LocalError(`${id}: the local runtime supports only {"statusCode": N} as a request template`);
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

/**
 * The variables that the local runtime supports, as they are written in header mappings. In templates, they are written with a preceding
 * `$`.
 */
const REQUEST_ID = /^context\.requestId$/;
const AFTER_AUTHORIZER = /^context\.(?:requestId|authorizer\.\w+)$/;

const VARIABLE = /\$(context(?:\.\w+)+)/g;

/**
 * Throws if a template or a header mapping uses a variable that the local runtime does not support. A header mapping may also be a literal
 * string in single quotes.
 */
function checkTexts(id: string, templates: Texts, parameters: Texts, prefix: string, variables: RegExp): void {
  for (const template of Object.values(templates)) {
    const rest = template.replaceAll(VARIABLE, (text, name: string) => (variables.test(name) ? "" : text));
    if (/[$#]/.test(rest)) {
      throw new LocalError(`${id}: a response template has a variable that the local runtime does not support`);
    }
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (name.startsWith(prefix) && (variables.test(value) || /^'.*'$/.test(value))) continue;
    throw new LocalError(`${id}: the mapping of ${name} is not supported by the local runtime`);
  }
}

type Variables = ReadonlyMap<string, string>;

/** Returns the headers of the response. A header is omitted if its variable has no value. */
const headersOf = (parameters: Texts, variables: Variables): [string, string][] =>
  Object.entries(parameters).flatMap(([name, mapping]) => {
    const value = mapping.startsWith("'") ? mapping.slice(1, -1) : variables.get(mapping);
    return value === undefined ? [] : [[name.slice(name.indexOf(".header.") + ".header.".length), value]];
  });

function withType(headers: [string, string][], mediaType: string): [string, string][] {
  return headers.some(([name]) => name.toLowerCase() === "content-type")
    ? headers
    : [...headers, ["Content-Type", mediaType]];
}

const render = (template: string, variables: Variables): string =>
  template.replaceAll(VARIABLE, (_, name: string) => variables.get(name) ?? "");

/**
 * The content codings that the local gateway supports. If a client accepts several, the first one in its `Accept-Encoding` header is used.
 */
const codings = { gzip: promisify(gzip), deflate: promisify(deflate) } as const;

/**
 * Compresses a complete response as API Gateway does. Returns the response unchanged if `minimumBytes` is undefined, if the response is
 * smaller or already has a content coding, or if the client accepts no supported coding.
 */
export async function compressed(
  answer: Answer,
  acceptEncoding: string | undefined,
  minimumBytes: number | undefined,
): Promise<Answer> {
  const coding = acceptedCoding(acceptEncoding);
  const isEncoded = answer.headers.some(([name]) => name.toLowerCase() === "content-encoding");
  const size = Buffer.byteLength(answer.body);
  if (minimumBytes === undefined || coding === undefined || isEncoded || size < minimumBytes) return answer;
  const body = await codings[coding](answer.body);
  return { ...answer, headers: [...answer.headers, ["Content-Encoding", coding]], body };
}

function acceptedCoding(accepted = ""): keyof typeof codings | undefined {
  for (const part of accepted.split(",")) {
    const [coding = "", quality = ""] = part.split(";").map((text) => text.trim().toLowerCase());
    if ((coding === "gzip" || coding === "deflate") && !/^q=0(?:\.0*)?$/.test(quality)) return coding;
  }
  return undefined;
}
