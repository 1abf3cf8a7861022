/** The API client of the tests. Throws if the OpenAPI document does not describe an answer, or a request that the service has accepted. */
import { Agent, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect, inject } from "vitest";
import * as z from "zod/mini";
import { isBlank } from "#shared/blank.ts";
import { type ApiClient, apiClient } from "../../docs/client/client.ts";
import { localToken } from "../../infra/local/local-token.ts";
import { closedDocument } from "./closed-document.ts";

const Described = z.object({
  content: z.optional(z.record(z.string(), z.object({ schema: z.optional(z.unknown()) }))),
});
/** An operation of the OpenAPI document contains the description of a response, or refers to a shared description among the components. */
const Place = z.union([z.object({ $ref: z.string() }), Described]);
/** A header parameter is only a `$ref` to a shared parameter, so it has neither `name` nor `in`. Query and path parameters have both. */
const Parameter = z.looseObject({ name: z.optional(z.string()), in: z.optional(z.string()) });
const Operation = z.object({
  parameters: z.optional(z.array(Parameter)),
  requestBody: z.optional(Described),
  responses: z.record(z.string(), Place),
});
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({
    schemas: z.record(z.string(), z.unknown()),
    responses: z.record(z.string(), Described),
    headers: z.record(z.string(), z.unknown()),
  }),
});

const document = z.parse(Document, closedDocument());
const ajv = new Ajv2020({ strict: false, allErrors: true });
/** Converts the texts of query parameters to the numbers and booleans that the document declares. */
const ajvOfQueries = new Ajv2020({ strict: false, allErrors: true, coerceTypes: true });
for (const one of [ajv, ajvOfQueries]) {
  addFormats.default(one);
  one.addSchema({ $id: "openapi", ...document });
}

/** The operations of the OpenAPI document, those with the fewest placeholders first, so that a path without `{id}` is matched first. */
const operations = Object.entries(document.paths)
  .flatMap(([path, item]) => {
    const pattern = new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{[^}]+\}/g, "[^/]+")}$`);
    return Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      pattern,
      operation,
    }));
  })
  .sort((a, b) => a.path.split("{").length - b.path.split("{").length);

const validators = new Map<string, ValidateFunction>();
const operationAt = (method: string, path: string) =>
  operations.find((entry) => entry.method === method && entry.pattern.test(path));

/** Throws if the document contains this operation, but does not describe the answer's status, media type or body. */
export function assertDocumented(method: string, path: string, answer: Answer): void {
  const operation = operationAt(method, path);
  if (operation === undefined) return;
  const place = `${method} ${operation.path} ${answer.status}`;
  const stated = operation.operation.responses[String(answer.status)];
  if (stated === undefined) throw new Error(`${place} is not documented: ${answer.text}`);
  // An answer with one of these statuses has no body, so the document describes no media type for it.
  if ([204, 302, 304].includes(answer.status) && answer.text === "") return;
  const pointer =
    "$ref" in stated
      ? stated.$ref.slice(1)
      : `/paths/${escaped(operation.path)}/${method.toLowerCase()}/responses/${answer.status}`;
  const response = "$ref" in stated ? document.components.responses[stated.$ref.split("/").at(-1) ?? ""] : stated;
  const mediaType = answer.headers.get("content-type")?.split(";")[0] ?? "";
  if (response?.content?.[mediaType]?.schema === undefined) {
    throw new Error(`${place} is not documented as ${mediaType}`);
  }
  if (!mediaType.endsWith("json") || mediaType === "application/x-ndjson") return;
  const validate = validatorAt(`openapi#${pointer}/content/${escaped(mediaType)}/schema`);
  if (!validate(answer.body)) {
    throw new Error(`${place}: ${ajv.errorsText(validate.errors)} in ${answer.text.slice(0, 500)}`);
  }
}

function compiled(name: string, compile: () => ValidateFunction): ValidateFunction {
  const validate = validators.get(name) ?? compile();
  validators.set(name, validate);
  return validate;
}
const validatorAt = (pointer: string) => compiled(pointer, () => ajv.compile({ $ref: pointer }));

/**
 * Matches violations of the document that the service accepts: the service reduces a number above the maximum, and ignores a filter that
 * the user may not use, even if the value of the filter is too long.
 */
const REDUCED = /must be <= |must match format "int64"|must NOT have more than \d+ characters/;

/** Throws if the OpenAPI document does not describe this request, which the service has accepted. */
function assertDescribed(method: string, target: string, mediaType: string, body: Buffer): void {
  const [path = "", query = ""] = target.split("?", 2);
  const found = operationAt(method, path);
  if (found === undefined) return;
  const pointer = `openapi#/paths/${escaped(found.path)}/${method.toLowerCase()}`;
  const faults: string[] = [];
  for (const [i, { name = "", in: place }] of (found.operation.parameters ?? []).entries()) {
    const value = new URLSearchParams(query).get(name);
    if (place !== "query" || value === null) continue;
    const schema = `${pointer}/parameters/${i}/schema`;
    const validate = compiled(`query ${schema}`, () =>
      ajvOfQueries.compile({ properties: { value: { $ref: schema } } }),
    );
    validate({ value });
    const own = (validate.errors ?? []).map(({ message }) => `${name} ${message}`);
    faults.push(...own.filter((one) => !REDUCED.test(one)));
  }
  // The operations of an offline device are not checked, because the service answers 200 even if it refuses an operation.
  const isSchema = found.operation.requestBody?.content?.[mediaType]?.schema !== undefined;
  if (isSchema && mediaType === "application/json" && body.length > 0 && path !== "/api/sync/operations") {
    const validate = validatorAt(`${pointer}/requestBody/content/${escaped(mediaType)}/schema`);
    // The service reads a blank text as null. It also reads an address that has only blank texts as null.
    const asNull = (name: string, value: unknown) =>
      (typeof value === "string" && isBlank(value)) || (name === "address" && z.safeParse(Empty, value).success)
        ? null
        : value;
    if (!validate(JSON.parse(body.toString())) && !validate(JSON.parse(body.toString(), asNull)))
      faults.push(ajv.errorsText(validate.errors));
  }
  if (faults.length > 0) throw new Error(`${method} ${target} is accepted, but not described: ${faults.join(", ")}`);
}

const Empty = z.object({ address1: z.null(), city: z.null(), state: z.null(), zip: z.null() });

const escaped = (step: string): string => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"));

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The decompressed body. */
  readonly text: string;
  /** The bytes of the body as they were sent, for an answer that is compressed or not text. */
  readonly bytes: Uint8Array;
  /** The parsed body. Undefined if the answer is not JSON. */
  readonly body: unknown;
}

export const baseUrl = (): string => inject("baseUrl");

/** The tests send tens of thousands of requests. They use Node's HTTP client, because it needs less processor time than `fetch`. */
const agent = new Agent({ keepAlive: true });

/** Sends one request and checks the answer. Does not normalize the path, so that a test can send invalid paths. */
export async function send(
  method: string,
  path: string,
  { headers = {}, body = "" }: { headers?: Record<string, string>; body?: string | Uint8Array | FormData } = {},
): Promise<Answer> {
  if (!(body instanceof FormData)) return sendBytes(method, path, headers, Buffer.from(body));
  const written = new Response(body);
  const type = { "Content-Type": written.headers.get("content-type") ?? "" };
  return sendBytes(method, path, { ...headers, ...type }, Buffer.from(await written.arrayBuffer()));
}

async function sendBytes(method: string, path: string, headers: Record<string, string>, body: Buffer): Promise<Answer> {
  const base = new URL(baseUrl());
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const target = base.pathname.replace(/\/$/, "") + path;
  const length = body.length === 0 ? {} : { "Content-Length": body.length };
  request(base, { method, path: target, agent, headers: { ...headers, ...length } }, resolve)
    .on("error", reject)
    .end(body);
  const response = await promise;
  const answer = await answerOf(response);
  assertDocumented(method, path.split("?", 1)[0] ?? "", answer);
  // Only the requests of API tests are checked. Other tests send random requests, and the service accepts some that the document forbids.
  const isOrdinary = expect.getState().testPath?.endsWith(".api.test.ts") === true;
  const mediaType = headers["Content-Type"] ?? headers["content-type"] ?? "";
  if (isOrdinary && answer.status < 300) assertDescribed(method, path, mediaType, body);
  return answer;
}

export async function answerOf(response: IncomingMessage): Promise<Answer> {
  const { rawHeaders, statusCode: status = 0 } = response;
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) headers.append(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
  const bytes = await buffer(response);
  const isZipped = headers.get("content-encoding") === "gzip" && bytes.length > 0;
  const text = (isZipped ? gunzipSync(bytes) : bytes).toString("utf8");
  const isJson = /json(?<!ndjson)/.test(headers.get("content-type") ?? "");
  // The answer to a HEAD request has the media type JSON but no body, so there is nothing to parse.
  return { status, headers, text, bytes, body: isJson && text !== "" ? JSON.parse(text) : undefined };
}

/** Empties the gateway's cache of callers' roles and permissions. Otherwise a changed role would take effect up to a minute later. */
export async function flushAuthorizers(): Promise<void> {
  const answer = await fetch(`${baseUrl()}/local/authorizers-cache`, { method: "DELETE" });
  if (answer.status !== 204) throw new Error(`the authorizers' cache was not flushed: ${answer.status}`);
}

const tokens = new Map<string, Promise<string>>();

export function tokenOf(email: string): Promise<string> {
  const known = tokens.get(email) ?? localToken(baseUrl(), email);
  tokens.set(email, known);
  return known;
}

export const json = { "Content-Type": "application/json" };

/** The generated client for apps. In the tests, it also checks every answer against the OpenAPI document. */
export interface Client extends Pick<ApiClient, "GET" | "POST" | "PUT" | "PATCH" | "DELETE"> {
  /** Sends any request, for example one that the generated types forbid: a wrong body, a wrong id or an unknown method. */
  (method: string, path: string, body?: unknown): Promise<Answer>;
  /** Sends a request as the function `send` does, with the token of this client. */
  readonly send: typeof send;
  readonly email: string;
}

export const clientOf = (email: string): Client => clientWith(() => tokenOf(email), email);

/** `email` is empty for a client with an API key. */
export function clientWith(accessToken: () => Promise<string>, email = ""): Client {
  const sendOwn: typeof send = async (method, path, { headers, ...rest } = {}) =>
    send(method, path, { ...rest, headers: { Authorization: `Bearer ${await accessToken()}`, ...headers } });
  const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
    sendOwn(method, path, { headers: json, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const { GET, POST, PUT, PATCH, DELETE } = apiClient({
    baseUrl: baseUrl(),
    accessToken,
    fetch: async (request) => {
      const { method, headers, url } = request;
      const body = Buffer.from(await request.arrayBuffer());
      const path = url.slice(baseUrl().replace(/\/$/, "").length);
      const answer = await sendBytes(method, path, Object.fromEntries(headers), body);
      const hasNoBody = [204, 304].includes(answer.status);
      return new Response(hasNoBody ? null : Uint8Array.from(answer.bytes), answer);
    },
  });
  return Object.assign(call, { send: sendOwn, email, GET, POST, PUT, PATCH, DELETE });
}

export const at = (id: number) => ({ params: { path: { id } } });

/** Owners of the local service's demo companies. All test files share these companies, so a test must not change them. */
export const demo = {
  owner: clientOf("owner@acme.test"),
  otherOwner: clientOf("owner@globex.test"),
};
