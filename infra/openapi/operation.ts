/** Builds one operation of the OpenAPI document from a route and its contract. */
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { type Scope, scopesOf } from "#shared/auth/scopes.ts";
import { textOf } from "#shared/documentation.ts";
import type { Contract } from "#shared/http/contract.ts";
import type { Route } from "../routes/route.ts";
import { answerExample } from "./answers.ts";
import type { JsonSchema } from "./portable.ts";
import { problemReferences } from "./problems.ts";
import type { Components } from "./schemas.ts";

/** Describes a function that serves a public document. Such a function has no contract. */
export const DocumentInfo = z.object({
  summary: z.string(),
  description: z.optional(z.string()),
  mediaType: z.string(),
  name: z.string(),
  schema: z.record(z.string(), z.unknown()),
});
export type DocumentInfo = z.infer<typeof DocumentInfo>;

type Fields = Record<string, unknown>;

/** By default, the operation id comes from the file: `prospects/list` becomes `prospectsList`. */
function operationIdOf({ file, operationId }: Route): string {
  return operationId ?? file.replace(/[/-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The sections of files and folders for which the default section of `sectionOf` is wrong. */
const otherSections: Readonly<Record<string, string>> = {
  "api-keys": "Service accounts",
  docs: "Documentation",
  exports: "Prospects",
  health: "Documentation",
  "health-webhooks": "Documentation",
  imports: "Prospects",
  me: "Users",
  "prospects/bulk": "Jobs",
  registrations: "Webhooks",
};

/** By default, the section comes from the folder: `service-accounts` becomes `Service accounts`. */
export function sectionOf({ file }: Route): string {
  const folder = at(file.split("/"), 0);
  const name = folder.charAt(0).toUpperCase() + folder.slice(1).replaceAll("-", " ");
  return otherSections[file] ?? otherSections[folder] ?? name;
}

const requestIdHeader = { "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" } };

const withoutToken = (
  route: Route,
  { summary, description }: Pick<DocumentInfo, "summary" | "description">,
): Fields => ({
  operationId: operationIdOf(route),
  summary,
  description: [description, "Needs no token."].filter(Boolean).join("\n\n"),
  tags: [sectionOf(route)],
  security: [],
});

export function documentOperation(route: Route, info: DocumentInfo, components: Components): Fields {
  const example = answerExample(route.file, undefined, false);
  const schema = components.define(info.name, info.schema);
  const content = { [info.mediaType]: { schema, ...(example !== undefined && { example }) } };
  return {
    ...withoutToken(route, info),
    responses: {
      200: { description: "OK", headers: requestIdHeader, content },
      ...problemReferences(route.method === "POST" ? [400, 413] : [400]),
    },
  };
}

/** Describes an endpoint of the console's sign-in, refresh or sign-out. It has no contract, because a contract cannot describe cookies. */
export const SessionInfo = z.object({
  summary: z.string(),
  description: z.string(),
  query: z.optional(z.record(z.string(), z.string())),
  answers: z.record(z.string(), z.object({ description: z.string(), mediaType: z.optional(z.string()) })),
  problems: z.array(z.int()),
});

export function sessionOperation(route: Route, info: z.infer<typeof SessionInfo>, components: Components): Fields {
  const parameters = Object.entries(info.query ?? {}).map(([name, description]) => ({
    name,
    in: "query",
    required: false,
    description,
    schema: { type: "string" },
  }));
  const answers = Object.entries(info.answers).map(([status, answer]) => [
    status,
    sessionAnswer(status, answer, components),
  ]);
  return {
    ...withoutToken(route, info),
    ...(parameters.length > 0 && { parameters }),
    responses: { ...problemReferences(info.problems), ...Object.fromEntries(answers) },
  };
}

function sessionAnswer(
  status: string,
  { description, mediaType }: z.infer<typeof SessionInfo>["answers"][string],
  components: Components,
): Fields {
  const headers = { ...requestIdHeader, "Set-Cookie": { $ref: "#/components/headers/Set-Cookie" } };
  if (status === "302") {
    return { description, headers: { ...headers, Location: { $ref: "#/components/headers/Location" } } };
  }
  if (status === "204") return { description, headers };
  if (mediaType !== undefined) {
    const schema = components.define("HtmlPage", { type: "string", description: "A page in HTML." });
    return { description, headers, content: { [mediaType]: { schema, example: "<!doctype html>" } } };
  }
  const schema = components.define("SignedOut", {
    type: "object",
    description: "The end of a session.",
    properties: {
      logoutUrl: {
        type: "string",
        format: "uri",
        description: "The page that ends the session at the identity provider.",
      },
    },
    required: ["logoutUrl"],
  });
  const example = { logoutUrl: "https://sign-in.example.com/logout" };
  return { description, headers, content: { "application/json": { schema, example } } };
}

/** The ids of demo records, so that a user of the local API reference can send an example request and get a record. */
const demoIds: Readonly<Record<string, number>> = {
  users: 139,
  statuses: 133,
  tags: 143,
  prospects: 256,
  addresses: 512,
  territories: 929,
  notes: 147,
  appointments: 169,
};

function demoExample({ path }: Route, parameter: string): { example?: number } {
  const [, collection = ""] = /^\/api\/(\w+)\/\{id\}/.exec(path) ?? [];
  const example = parameter === "id" ? demoIds[collection] : undefined;
  return example === undefined ? {} : { example };
}

export function operation(route: Route, contract: Contract, components: Components): Fields {
  const { path, query, body } = contract;
  const parametersIn = (place: "path" | "query", source: z.ZodMiniType | undefined) =>
    source === undefined ? [] : components.parameters(source).map((parameter) => ({ ...parameter, in: place }));
  const inPath = parametersIn("path", path).map((parameter) => ({
    ...parameter,
    ...demoExample(route, parameter.name),
  }));
  const inHeader = [
    ...(route.method === "POST" && route.isRead !== true ? [{ $ref: "#/components/parameters/Idempotency-Key" }] : []),
    ...(contract.revalidated ? [{ $ref: "#/components/parameters/If-None-Match" }] : []),
  ];
  const scopes = scopesOf(contract.scope);
  const all = [...inPath, ...parametersIn("query", query), ...inHeader];
  assertPlaceholders(
    route,
    inPath.map(({ name }) => name),
  );
  return {
    operationId: operationIdOf(route),
    summary: contract.summary,
    description: [
      contract.description,
      isOfRecord(route) && notFound(sectionOf(route)),
      `${rights[contract.allow]} ${keyText(scopes)}`,
    ]
      .filter(Boolean)
      .join("\n\n"),
    ...(scopes !== undefined && { "x-required-scope": scopes.join(" | ") }),
    tags: [sectionOf(route)],
    ...(all.length > 0 && { parameters: all }),
    ...(body !== undefined && {
      requestBody:
        contract.upload === undefined ? requestBody(route, contract, body, components) : uploadBody(components),
    }),
    responses: {
      ...(contract.ok && { 200: okSuccess(route, contract, contract.ok.response, components) }),
      [contract.status ?? 200]: success(route, contract, components),
      ...(contract.mayBeEmpty && { 204: noContent(contract) }),
      ...(contract.revalidated && { 304: notModified }),
      ...problemReferences(problemStatuses(route, contract)),
    },
  };
}

const rights = {
  everyone: "For every signed-in user.",
  admin: "For admins and owners.",
  canViewAllProspects: "Needs the permission `canViewAllProspects`, which admins and owners have.",
  canManageProspects: "Needs the permission `canManageProspects`, which admins and owners have.",
} as const satisfies Record<Contract["allow"], string>;

const keyText = (scopes: readonly Scope[] | undefined): string =>
  scopes === undefined
    ? "A key needs no scope."
    : `A key needs the scope ${scopes.map((scope) => `\`${scope}\``).join(" or ")}.`;

const disabled = (record: string): string =>
  `A ${record} of another company is 404. After a DELETE the record can still be read and changed; only a second DELETE is 404.`;

/** Says which records are 404. Most deleted records are, but a DELETE of a status or a user only disables it. */
const notFound = (section: string): string =>
  ({ Statuses: disabled("status"), Users: disabled("user") })[section] ??
  "A record of another company, a record that the caller may not see and a deleted record are all 404.";

/** Returns true if the path contains the id of a record. The response is 404 if there is no such record. */
const isOfRecord = ({ path }: Route): boolean => /\{\w*id\}/i.test(path);

function requestBody(
  { file }: Route,
  { bodyMediaType }: Contract,
  body: z.ZodMiniType,
  components: Components,
): Fields {
  const schema = reference(file, components.schema(body, "input"));
  const { example } = textOf(body);
  const required = !z.safeParse(body, {}).success;
  const described = { schema, ...(example !== undefined && { example }) };
  const other = bodyMediaType === undefined ? {} : { [bodyMediaType]: described };
  return { required, content: { "application/json": described, ...other } };
}

const uploadExample = { file: "name,phone,lat,lng,status\r\nMaria Alvarez,+1 303 555 0142,39.7392,-104.9903,New\r\n" };

function uploadBody(components: Components): Fields {
  const schema = components.define("CsvUpload", {
    type: "object",
    description: "A form with one CSV file.",
    required: ["file"],
    properties: { file: { type: "string", format: "binary", description: "The file, in a part of this name." } },
  });
  const encoding = { file: { contentType: "text/csv" } };
  return { required: true, content: { "multipart/form-data": { schema, encoding, example: uploadExample } } };
}

const etag = { ETag: { $ref: "#/components/headers/ETag" } };
const notModified = {
  description: "Not Modified: the copy of the client is current.",
  headers: { ...requestIdHeader, ...etag },
};

const noContent = ({ revalidated }: Contract): Fields => ({
  description: "No Content: the answer would be empty.",
  headers: { ...requestIdHeader, ...(revalidated && etag) },
});

const statusWords = { 200: "OK", 201: "Created", 202: "Accepted" } as const;

function success({ method, file, isRead }: Route, contract: Contract, components: Components): Fields {
  const { status = 200, response } = contract;
  const answer = components.schema(response, "output");
  const { component, isList } = componentOf(answer);
  const schema = isList ? listOf(component, answer, components) : reference(file, answer);
  const example = answerExample(file, component, isList);
  const replayed = { "Idempotency-Replayed": { $ref: "#/components/headers/Idempotency-Replayed" } };
  const disposition =
    contract.file === undefined ? {} : { "Content-Disposition": { $ref: "#/components/headers/Content-Disposition" } };
  const hasLocation = status === 201 || (status === 202 && contract.collection !== undefined);
  const location = hasLocation ? { Location: { $ref: "#/components/headers/Location" } } : {};
  return {
    description: statusWords[status],
    headers: {
      ...requestIdHeader,
      ...location,
      ...(method === "POST" && isRead !== true && replayed),
      ...disposition,
      ...(contract.revalidated && etag),
    },
    content: {
      [contract.file?.mediaType ?? contract.mediaType ?? "application/json"]: {
        schema,
        ...(example !== undefined && { example }),
      },
    },
  };
}

/**
 * Describes the status 200 of a function that usually responds with another status. `answers.ts` has an example only of the usual response,
 * so this code passes a file name that is not there. The example is then that of the response's schema.
 */
const okSuccess = (route: Route, contract: Contract, response: z.ZodMiniType, components: Components): Fields =>
  success({ ...route, file: `${route.file}?ok` }, { ...contract, response, status: 200 }, components);

const Reference = z.object({ $ref: z.string() });
const List = z.object({ items: Reference });

/** Throws if a schema has no name. Otherwise client generators would invent a name such as `inline_object_7`. */
function reference(file: string, schema: JsonSchema): JsonSchema {
  if ("$ref" in schema) return schema;
  throw new Error(`functions/${file}.ts: wrap the schema of its body or answer in named()`);
}

const listOf = (component: string | undefined, list: JsonSchema, components: Components): JsonSchema =>
  components.define(`${component}List`, { ...list, description: `A list of \`${component}\`.` });

function componentOf(schema: JsonSchema): { component: string | undefined; isList: boolean } {
  const list = List.safeParse(schema);
  const reference = list.success ? list.data.items : Reference.safeParse(schema).data;
  return { component: reference?.$ref.split("/").at(-1), isList: list.success };
}

/** Returns the error statuses of an operation. 400 is always included, because API Gateway sends it if it cannot read a request. */
function problemStatuses(route: Route, { allow, scope, body, mayReset }: Contract): number[] {
  const { method } = route;
  return [
    400,
    401,
    ...(allow === "everyone" && scope === "none" ? [] : [403]),
    ...(isOfRecord(route) ? [404] : []),
    ...(method === "GET" ? [] : [409]),
    ...(mayReset === true ? [410] : []),
    ...(body === undefined ? [] : [413, 415]),
    ...(method === "POST" ? [422] : []),
  ];
}

function assertPlaceholders({ path, file }: Route, described: readonly string[]): void {
  const placeholders = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  if (placeholders.join() !== described.join()) {
    throw new Error(`${file}: the path ${path} and the contract name different parameters (${described.join()})`);
  }
}
