/** Builds the errors that API Gateway sends without calling a function, and compresses responses as API Gateway does. */
import { promisify } from "node:util";
import { deflate, gzip } from "node:zlib";
import { LocalError } from "../servers/error.ts";
import { type Api, PROBLEM, type PreflightIntegration } from "../template/api-definition.ts";

export interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | Uint8Array;
}

/** The errors that the local gateway sends. The API definition has a response for each of them. */
export type GatewayError =
  | "UNAUTHORIZED"
  | "ACCESS_DENIED"
  | "AUTHORIZER_FAILURE"
  | "AUTHORIZER_CONFIGURATION_ERROR"
  | "MISSING_AUTHENTICATION_TOKEN"
  | "INVALID_API_KEY"
  | "BAD_REQUEST_PARAMETERS"
  | "REQUEST_TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "THROTTLED"
  | "INTEGRATION_FAILURE"
  | "INTEGRATION_TIMEOUT";

/** `authorizer` is the context that the authorizer function returned. Only the error ACCESS_DENIED has it. */
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
    const response = gatewayResponses[type];
    if (response === undefined) throw new Error(`${type} has no response`);
    const { statusCode, responseTemplates, responseParameters } = response;
    return {
      status: Number(statusCode),
      headers: [...headersOf(responseParameters, variables), ["Content-Type", PROBLEM]],
      body: render(responseTemplates[PROBLEM], variables),
    };
  };
}

/** Answers a CORS preflight. The only template is for JSON, so a request with another content type gets an error. */
export function preflightAnswer(name: string, { responses }: PreflightIntegration) {
  const { responseParameters, responseTemplates } = responses.default;
  checkTexts(name, responseTemplates, responseParameters, "method.response.header.", REQUEST_ID);
  return (contentType: string | undefined, requestId: string): Answer | GatewayError => {
    const [mediaType] = (contentType ?? "application/json").split(";", 1);
    if (mediaType?.trim().toLowerCase() !== "application/json") return "UNSUPPORTED_MEDIA_TYPE";
    const headers = headersOf(responseParameters, new Map([["context.requestId", requestId]]));
    return { status: 204, headers, body: "" };
  };
}

type Texts = Readonly<Record<string, string>>;

/** The supported variables, as header mappings contain them. In templates, each begins with a `$`. */
const REQUEST_ID = /^context\.requestId$/;
const AFTER_AUTHORIZER = /^context\.(?:requestId|authorizer\.\w+)$/;

const VARIABLE = /\$(context(?:\.\w+)+)/g;

/** Throws for a variable that the local runtime does not support. A header mapping may also be a string in single quotes. */
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

const headersOf = (parameters: Texts, variables: Variables): [string, string][] =>
  Object.entries(parameters).flatMap(([name, mapping]) => {
    const value = mapping.startsWith("'") ? mapping.slice(1, -1) : variables.get(mapping);
    return value === undefined ? [] : [[name.slice(name.indexOf(".header.") + ".header.".length), value]];
  });

const render = (template: string, variables: Variables): string =>
  template.replaceAll(VARIABLE, (_, name: string) => variables.get(name) ?? "");

/** If a client accepts several content codings, the first one in its `Accept-Encoding` header is used. */
const codings = { gzip: promisify(gzip), deflate: promisify(deflate) } as const;

export async function compressed(
  answer: Answer,
  acceptEncoding: string | undefined,
  minimumBytes: number,
): Promise<Answer> {
  const coding = acceptedCoding(acceptEncoding);
  const isEncoded = answer.headers.some(([name]) => name.toLowerCase() === "content-encoding");
  const size = Buffer.byteLength(answer.body);
  if (coding === undefined || isEncoded || size < minimumBytes) return answer;
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
