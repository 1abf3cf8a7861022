/** One operation of the OpenAPI document from a route and its contract. */
import * as z from "zod/mini";
import type { Contract } from "#shared/http/contract.ts";
import { examples } from "./openapi-examples.ts";
import { type Components, type JsonSchema, parameters } from "./openapi-schemas.ts";
import type { Route } from "./routes.ts";

/** What a function without a contract says of itself: a public document that is not JSON of the API. */
export const DocumentInfo = z.object({
  summary: z.string(),
  tag: z.string(),
  mediaType: z.string(),
  schema: z.record(z.string(), z.unknown()),
});
export type DocumentInfo = z.infer<typeof DocumentInfo>;

type Fields = Record<string, unknown>;

/** `prospects/list` -> `prospectsList`. */
export function operationId(file: string): string {
  return file.replace(/[/-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

const requestIdHeader = { "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" } };

export function documentOperation({ file }: Route, info: DocumentInfo): Fields {
  const content = { [info.mediaType]: { schema: info.schema } };
  return {
    operationId: operationId(file),
    summary: info.summary,
    tags: [info.tag],
    security: [],
    responses: {
      200: { description: "OK", headers: requestIdHeader, content },
      ...problemResponses([400, ...always]),
    },
  };
}

export function operation(route: Route, contract: Contract, components: Components): Fields {
  const { path, query, body, description } = contract;
  const inPath = path === undefined ? [] : parameters(components, path).map((field) => ({ ...field, in: "path" }));
  const inQuery = query === undefined ? [] : parameters(components, query).map((field) => ({ ...field, in: "query" }));
  const inHeader = route.method === "POST" ? [{ $ref: "#/components/parameters/Idempotency-Key" }] : [];
  const described = [...inPath, ...inQuery, ...inHeader];
  assertPlaceholders(
    route,
    inPath.map(({ name }) => name),
  );
  return {
    operationId: operationId(route.file),
    summary: contract.summary,
    ...(description !== undefined && { description }),
    tags: [contract.tag],
    ...(contract.allow === "public" && { security: [] }),
    ...(described.length > 0 && { parameters: described }),
    ...(body !== undefined && { requestBody: requestBody(components.schema(body, "input"), examples[route.file]) }),
    responses: {
      [contract.status]: success(route, contract, components),
      ...problemResponses(problemStatuses(route, contract)),
    },
  };
}

function requestBody(schema: JsonSchema, example: unknown): Fields {
  return { content: { "application/json": { schema, ...(example !== undefined && { example }) } } };
}

const statusWords = { 200: "OK", 201: "Created", 202: "Accepted" } as const;

function success({ method }: Route, { status, response }: Contract, components: Components): Fields {
  const replayed = { "Idempotency-Replayed": { $ref: "#/components/headers/Idempotency-Replayed" } };
  const location = status === 201 ? { Location: { $ref: "#/components/headers/Location" } } : {};
  return {
    description: statusWords[status],
    headers: { ...requestIdHeader, ...location, ...(method === "POST" && replayed) },
    content: { "application/json": { schema: components.schema(response, "output") } },
  };
}

/** Problems that every route may answer: too many requests, our own faults, and those of API Gateway. */
const always = [429, 500, 502, 503, 504] as const;

/** What follows from the contract; API Gateway itself answers 400 to a request that it cannot read. */
function problemStatuses({ method }: Route, { allow, path, body }: Contract): number[] {
  return [
    400,
    ...(allow === "public" ? [] : [401]),
    ...(allow === "public" || allow === "everyone" ? [] : [403]),
    ...(path === undefined ? [] : [404]),
    ...(method === "GET" ? [] : [409]),
    ...(body === undefined ? [] : [413, 415]),
    ...(method === "POST" ? [422] : []),
    ...always,
  ];
}

const problemResponses = (statuses: readonly number[]): Fields =>
  Object.fromEntries(statuses.map((status) => [status, { $ref: `#/components/responses/Problem${status}` }]));

function assertPlaceholders({ path, file }: Route, described: readonly string[]): void {
  const placeholders = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  if (placeholders.join() !== described.join()) {
    throw new Error(`${file}: the path ${path} and the contract name different parameters (${described.join()})`);
  }
}
