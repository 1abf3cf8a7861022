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

/**
 * Returns one line for each breaking change. The later document must accept each request that the earlier document accepts. Clients of the
 * earlier document must understand each response and each event of the later document.
 */
export function breakingChanges(earlier: unknown, later: unknown): string[] {
  const [before, after] = [Document.parse(earlier), Document.parse(later)];
  const found: string[] = [];
  for (const [path, methods] of Object.entries(before.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const name = `${method.toUpperCase()} ${path}`;
      const next = after.paths[path]?.[method];
      if (next === undefined) found.push(`${name} is gone`);
      else
        compareOperations({ document: before, operation }, { document: after, operation: next }, (problem) =>
          found.push(`${name}: ${problem}`),
        );
    }
  }
  for (const [event, { post }] of Object.entries(before.webhooks)) {
    const next = after.webhooks[event];
    const sent = { document: after, content: next?.post.requestBody.content ?? {} };
    const known = { document: before, content: post.requestBody.content };
    compareContents("answer", known, sent, `the event ${event}`, (problem) => found.push(problem));
  }
  return [...new Set(found)];
}

interface Described {
  readonly document: Document;
  readonly operation: Operation;
}

type Report = (problem: string) => void;

function compareOperations(before: Described, after: Described, report: Report): void {
  const { operationId } = before.operation;
  if (after.operation.operationId !== operationId)
    report(`its operationId is ${after.operation.operationId}, not ${operationId}`);
  if (before.operation.security?.length === 0 && after.operation.security?.length !== 0) report("it needs a token now");
  compareParameters(before, after, report);
  compareBodies(before, after, report);
  compareAnswers(before, after, report);
}

function compareParameters(before: Described, after: Described, report: Report): void {
  const [known, now] = [parametersOf(before), parametersOf(after)];
  for (const [name, parameter] of now) {
    if (parameter.required && known.get(name)?.required !== true) report(`${name} is required now`);
  }
  for (const [name, parameter] of known) {
    const next = now.get(name);
    if (next === undefined) report(`${name} is gone`);
    else
      compareSchemas(
        "request",
        { document: before.document, schema: parameter.schema },
        { document: after.document, schema: next.schema },
        name,
        report,
      );
  }
}

const parametersOf = ({ document, operation }: Described) =>
  new Map(
    operation.parameters.map((entry) => {
      const parameter = Parameter.parse(target(document, entry));
      return [`the ${parameter.in} parameter ${parameter.name}`, parameter] as const;
    }),
  );

function compareBodies(before: Described, after: Described, report: Report): void {
  const [body, next] = [before.operation.requestBody, after.operation.requestBody];
  if (next?.required === true && body?.required !== true) report("the request body is required now");
  const [known, taken] = [
    { document: before.document, content: body?.content ?? {} },
    { document: after.document, content: next?.content ?? {} },
  ];
  compareContents("request", known, taken, "the request body", report);
}

function compareAnswers(before: Described, after: Described, report: Report): void {
  for (const [status, entry] of Object.entries(before.operation.responses)) {
    const next = after.operation.responses[status];
    // All error responses have the same body format (`application/problem+json`), so the removal of an error status breaks no client.
    if (next === undefined && !status.startsWith("2")) continue;
    if (next === undefined) {
      report(`the answer ${status} is gone`);
      continue;
    }
    const [answer, later] = [
      Response.parse(target(before.document, entry)),
      Response.parse(target(after.document, next)),
    ];
    for (const header of Object.keys(answer.headers)) {
      if (!(header in later.headers)) report(`the header ${header} of the answer ${status} is gone`);
    }
    const [known, sent] = [
      { document: before.document, content: answer.content },
      { document: after.document, content: later.content },
    ];
    compareContents("answer", known, sent, `the answer ${status}`, report);
  }
}

interface Contents {
  readonly document: Document;
  readonly content: z.infer<typeof Content>;
}

function compareContents(direction: Direction, before: Contents, after: Contents, name: string, report: Report): void {
  for (const [type, { schema }] of Object.entries(before.content)) {
    const place = `${name} (${type})`;
    const next = after.content[type];
    if (next === undefined) report(`${place} is ${direction === "request" ? "not accepted any more" : "gone"}`);
    else {
      const [known, now] = [
        { document: before.document, schema },
        { document: after.document, schema: next.schema },
      ];
      compareSchemas(direction, known, now, place, report);
    }
  }
}

interface Placed {
  readonly document: Document;
  readonly schema: JsonSchema;
}

function compareSchemas(direction: Direction, before: Placed, after: Placed, place: string, report: Report): void {
  const side = ({ document, schema }: Placed) => ({ schema, resolve: ($ref: string) => target(document, { $ref }) });
  const [written, read] = direction === "request" ? [before, after] : [after, before];
  compare(side(written), side(read), direction, (field, problem) =>
    report(`${place}${field === "" ? "" : ` at ${field.replace(/^\./, "")}`} ${problem}`),
  );
}

/** Returns the component to which a `$ref` refers. Returns any other value unchanged. */
function target({ components }: Document, value: JsonSchema): JsonSchema {
  if (typeof value.$ref !== "string") return value;
  const [, kind = "", name = ""] = /^#\/components\/([^/]+)\/(.+)$/.exec(value.$ref) ?? [];
  const found = components[kind]?.[name];
  if (found === undefined) throw new Error(`the document has no ${value.$ref}`);
  return found;
}

/** Keywords that have no effect on clients. A release stores its OpenAPI document without these keywords. */
const texts: ReadonlySet<string> = new Set(["description", "summary", "example", "examples"]);

/** Returns the versions, paths, webhooks and components of a document, without descriptions and examples. A release records this result. */
export const contractOf = (document: object): unknown => {
  const { openapi, info, paths, webhooks, components } = Document.parse(document);
  return {
    openapi,
    info: z.looseObject({ version: z.string() }).parse(withoutTexts(info)),
    paths: withoutTexts(paths),
    webhooks: withoutTexts(webhooks),
    components: withoutTexts(components),
  };
};

/** Keywords whose value is a map. The keys of this map are names and not keywords, so a key `description` in it is not removed. */
const maps: ReadonlySet<string> = new Set(["properties", "schemas", "headers", "responses", "parameters", "content"]);

function withoutTexts(part: unknown, isMap = false): unknown {
  if (Array.isArray(part)) return part.map((one) => withoutTexts(one));
  if (!isSchema(part)) return part;
  const kept = Object.entries(part).filter(([name]) => isMap || !texts.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutTexts(value, maps.has(name) && !isMap)]));
}
