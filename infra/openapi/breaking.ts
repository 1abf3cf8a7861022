/** Compares two OpenAPI documents and finds the changes that break clients of the earlier document. */
import * as z from "zod/mini";
import { isSchema, type JsonSchema } from "./portable.ts";
import { compare, type Direction } from "./subset.ts";

const Fields = z.record(z.string(), z.unknown());
const Parameter = z.looseObject({
  name: z.string(),
  in: z.string(),
  required: z._default(z.boolean(), false),
  schema: z._default(Fields, {}),
});
const Content = z._default(z.record(z.string(), z.looseObject({ schema: z._default(Fields, {}) })), {});
const Response = z.looseObject({ headers: z._default(Fields, {}), content: Content });
const Body = z.looseObject({ required: z._default(z.boolean(), false), content: Content });
const Operation = z.looseObject({
  operationId: z.string(),
  security: z.optional(z.array(z.unknown())),
  parameters: z._default(z.array(Fields), []),
  requestBody: z.optional(Body),
  responses: z.record(z.string(), Fields),
});
type Operation = z.infer<typeof Operation>;

const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  webhooks: z._default(z.record(z.string(), z.looseObject({ post: z.looseObject({ requestBody: Body }) })), {}),
  components: z._default(z.record(z.string(), z.record(z.string(), Fields)), {}),
});
type Document = z.infer<typeof Document>;

interface Comparison {
  readonly before: Document;
  readonly after: Document;
  readonly report: (problem: string) => void;
}

/** A part of the contract: whether it is a request or an answer, and its name in a report. */
interface Part {
  readonly direction: Direction;
  readonly name: string;
}

/**
 * Returns a line for each breaking change. The later document must accept each request that the earlier document accepts, and clients of
 * the earlier document must understand each response and event of the later document.
 */
export function breakingChanges(earlier: unknown, later: unknown): string[] {
  const found = new Set<string>();
  const [before, after] = [Document.parse(earlier), Document.parse(later)];
  for (const [path, methods] of Object.entries(before.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const name = `${method.toUpperCase()} ${path}`;
      const next = after.paths[path]?.[method];
      const report = (problem: string): void => void found.add(`${name}: ${problem}`);
      if (next === undefined) found.add(`${name} is gone`);
      else compareOperations({ before, after, report }, operation, next);
    }
  }
  const report = (problem: string): void => void found.add(problem);
  for (const [event, { post }] of Object.entries(before.webhooks)) {
    const sent = after.webhooks[event]?.post.requestBody.content ?? {};
    const part = { direction: "answer", name: `the event ${event}` } as const;
    compareContents({ before, after, report }, part, post.requestBody.content, sent);
  }
  return [...found];
}

function compareOperations(documents: Comparison, known: Operation, now: Operation): void {
  const { report } = documents;
  if (now.operationId !== known.operationId) report(`its operationId is ${now.operationId}, not ${known.operationId}`);
  if (known.security?.length === 0 && now.security?.length !== 0) report("it needs a token now");
  compareParameters(documents, known, now);
  const [body, next] = [known.requestBody, now.requestBody];
  const part = { direction: "request", name: "the request body" } as const;
  if (next?.required === true && body?.required !== true) report(`${part.name} is required now`);
  compareContents(documents, part, body?.content ?? {}, next?.content ?? {});
  compareAnswers(documents, known, now);
}

function compareParameters(documents: Comparison, known: Operation, now: Operation): void {
  const [before, after] = [parametersOf(documents.before, known), parametersOf(documents.after, now)];
  for (const [name, { required }] of after) {
    if (required && before.get(name)?.required !== true) documents.report(`${name} is required now`);
  }
  for (const [name, { schema }] of before) {
    const next = after.get(name);
    if (next === undefined) documents.report(`${name} is gone`);
    else compareSchemas(documents, { direction: "request", name }, schema, next.schema);
  }
}

const parametersOf = (document: Document, { parameters }: Operation) =>
  new Map(
    parameters.map((entry) => {
      const parameter = Parameter.parse(target(document, entry));
      return [`the ${parameter.in} parameter ${parameter.name}`, parameter] as const;
    }),
  );

function compareAnswers(documents: Comparison, known: Operation, now: Operation): void {
  const { before, after, report } = documents;
  for (const [status, entry] of Object.entries(known.responses)) {
    const next = now.responses[status];
    // All error responses have the same body format (`application/problem+json`), so the removal of an error status breaks no client.
    if (next === undefined && status.startsWith("2")) report(`the answer ${status} is gone`);
    if (next === undefined) continue;
    const [answer, later] = [Response.parse(target(before, entry)), Response.parse(target(after, next))];
    for (const header of Object.keys(answer.headers)) {
      if (!(header in later.headers)) report(`the header ${header} of the answer ${status} is gone`);
    }
    compareContents(documents, { direction: "answer", name: `the answer ${status}` }, answer.content, later.content);
  }
}

type Content = z.infer<typeof Content>;

function compareContents(documents: Comparison, { direction, name }: Part, known: Content, now: Content): void {
  for (const [type, { schema }] of Object.entries(known)) {
    const part = { direction, name: `${name} (${type})` };
    const next = now[type];
    if (next !== undefined) compareSchemas(documents, part, schema, next.schema);
    else documents.report(`${part.name} is ${direction === "request" ? "not accepted any more" : "gone"}`);
  }
}

function compareSchemas(documents: Comparison, { direction, name }: Part, known: JsonSchema, now: JsonSchema): void {
  const side = (document: Document, schema: JsonSchema) => ({
    schema,
    resolve: ($ref: string) => target(document, { $ref }),
  });
  const [before, after] = [side(documents.before, known), side(documents.after, now)];
  const [written, read] = direction === "request" ? [before, after] : [after, before];
  compare(written, read, direction, (field, problem) =>
    documents.report(`${name}${field === "" ? "" : ` at ${field.replace(/^\./, "")}`} ${problem}`),
  );
}

/** Returns the component of a `$ref`, and any other value unchanged. */
function target({ components }: Document, value: JsonSchema): JsonSchema {
  if (typeof value.$ref !== "string") return value;
  const [, kind = "", name = ""] = /^#\/components\/([^/]+)\/(.+)$/.exec(value.$ref) ?? [];
  const found = components[kind]?.[name];
  if (found === undefined) throw new Error(`the document has no ${value.$ref}`);
  return found;
}

/** Keywords that have no effect on clients, so a release does not record them. */
const texts: ReadonlySet<string> = new Set(["description", "summary", "example", "examples"]);

/** Returns the part of a document that a release records: versions, paths, webhooks and components without descriptions and examples. */
export const contractOf = (document: object): unknown => {
  const { openapi, info, paths, webhooks, components } = Document.parse(document);
  return withoutTexts({ openapi, info, paths, webhooks, components });
};

/** The keys in these keywords' values are names, so a key `description` there is no keyword and is not removed. */
const maps: ReadonlySet<string> = new Set(["properties", "schemas", "headers", "responses", "parameters", "content"]);

function withoutTexts(part: unknown, isMap = false): unknown {
  if (Array.isArray(part)) return part.map((one) => withoutTexts(one));
  if (!isSchema(part)) return part;
  const kept = Object.entries(part).filter(([name]) => isMap || !texts.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutTexts(value, maps.has(name) && !isMap)]));
}
