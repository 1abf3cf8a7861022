/** Tests that clients of the last release accept this version's answers, and answers with fields and values that no release has yet. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { OPENAPI_FILE } from "../../../infra/build/bundle.ts";
import { isSchema, type JsonSchema } from "../../../infra/openapi/portable.ts";
import { recorded } from "../../../infra/release/releases.ts";
import { KNOWN_VALUES } from "../../../shared/open-schema.ts";
import { eventTypes } from "../../../shared/webhooks/catalogue.ts";
import { closedDocument } from "../../harness/closed-document.ts";

const Content = z.record(
  z.string(),
  z.object({ schema: z.object({ $ref: z.string() }), example: z.optional(z.unknown()) }),
);
const Answers = z.record(z.string(), z.object({ content: z.optional(Content), $ref: z.optional(z.string()) }));
const Operation = z.object({ operationId: z.string(), responses: Answers });
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  webhooks: z._default(
    z.record(z.string(), z.object({ post: z.object({ requestBody: z.object({ content: Content }) }) })),
    {},
  ),
  components: z.object({ schemas: z.record(z.string(), z.record(z.string(), z.unknown())), responses: Answers }),
});

const current = z.parse(Document, JSON.parse(readFileSync(OPENAPI_FILE, "utf8")));
const { schemas, responses } = current.components;

interface Answer {
  readonly place: string;
  readonly component: string;
  readonly body: unknown;
}

const events: z.infer<typeof Operation>[] = Object.entries(current.webhooks).map(([operationId, { post }]) => ({
  operationId,
  responses: { event: post.requestBody },
}));
const operations = [...Object.values(current.paths).flatMap((methods) => Object.values(methods)), ...events];
/** The examples of all JSON answers and events. They stand for real answers, whose fields the API tests compare with the document. */
const answers: readonly Answer[] = [...operations, { operationId: "", responses }].flatMap(({ operationId, ...one }) =>
  Object.entries(one.responses).flatMap(([status, { content = {} }]) =>
    Object.entries(content).flatMap(([type, { schema, example }]) =>
      /[/+]json$/.test(type)
        ? [{ place: `${operationId} ${status}`, component: schema.$ref.split("/").at(-1) ?? "", body: example }]
        : [],
    ),
  ),
);

const resolved = (schema: JsonSchema): JsonSchema =>
  typeof schema.$ref === "string" ? (schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}) : schema;

/** Returns the schema of the value. Among several choices, it is the one with the value's `type`, or the first. */
function chosen(schema: JsonSchema, value: unknown): JsonSchema {
  const { oneOf, anyOf, ...whole } = resolved(schema);
  const choices = [oneOf, anyOf].flatMap((list) => (Array.isArray(list) ? list.filter(isSchema) : []));
  if (choices.length === 0) return whole;
  const typeOf = (one: JsonSchema): unknown => {
    const { properties } = resolved(one);
    return isSchema(properties) && isSchema(properties.type) ? properties.type.const : undefined;
  };
  const found = choices.find((one) => isSchema(value) && typeOf(one) === value.type) ?? choices[0] ?? {};
  return resolved(found);
}

/** Returns the value with an additional field in each object. A text whose schema lists known values is replaced by an unknown value. */
function invented(schema: JsonSchema, value: unknown): unknown {
  const shape = chosen(schema, value);
  if (Array.isArray(value)) return value.map((item) => invented(isSchema(shape.items) ? shape.items : {}, item));
  if (!isSchema(value)) return KNOWN_VALUES in shape && value !== null ? "invented" : value;
  const { properties } = shape;
  if (!isSchema(properties)) return value;
  const fields = Object.entries(value).map(([name, inner]) => {
    const field = properties[name];
    return [name, isSchema(field) ? invented(field, inner) : inner];
  });
  return { ...Object.fromEntries(fields), inventedField: { any: ["value"] } };
}

/** Returns a function that returns the place of each answer that the schemas of the document refuse, and the reason. */
function refusedBy(document: unknown) {
  const ajv = addFormats.default(new Ajv2020({ strict: false, inlineRefs: false, code: { optimize: false } }));
  ajv.addSchema({ $id: "document", ...z.parse(z.looseObject({}), document) });
  return (bodies: readonly Answer[]): string[] =>
    bodies.flatMap(({ place, component, body }) => {
      const validate = ajv.getSchema(`document#/components/schemas/${component}`);
      return validate?.(body) === true ? [] : [`${place}: ${ajv.errorsText(validate?.errors)}`];
    });
}

const release = recorded("openapi");
const refusedByRelease = refusedBy(release);
const known = new Set(Object.keys(z.parse(Document, release).components.schemas));
const ofRelease = answers.filter(({ component }) => known.has(component));
const unknown = ofRelease.map((answer) => ({
  ...answer,
  body: invented(schemas[answer.component] ?? {}, answer.body),
}));

describe("the document of the last release", () => {
  test("accepts the answers of this release", () => {
    expect(ofRelease.length).toBeGreaterThan(90);
    expect(refusedByRelease(ofRelease)).toEqual([]);
  });

  test("accepts answers with an invented field in each object, and an invented value of each open list", () => {
    const texts = unknown.map(({ body }) => JSON.stringify(body));
    expect(texts.filter((text) => text.includes('"invented"')).length).toBeGreaterThan(50);
    expect(texts.filter((text) => text.includes('"inventedField"')).length).toBeGreaterThan(80);
    expect(refusedByRelease(unknown)).toEqual([]);
  });
});

test("the closed form of the document, with which the tests check answers, refuses invented fields and values", () => {
  const refused = refusedBy(closedDocument());
  expect(refused(ofRelease)).toEqual([]);
  const isChanged = ({ body }: Answer) => /"invented(?:Field)?"/.test(JSON.stringify(body));
  expect(refused(unknown)).toHaveLength(unknown.filter(isChanged).length);
});

/** Adds all objects within `part`, and within schemas to which it refers, to `seen` with their places in the document. Skips examples. */
function reached(part: unknown, place: string, seen: Map<unknown, string>): void {
  if (typeof part !== "object" || part === null || seen.has(part)) return;
  seen.set(part, place);
  for (const [name, inner] of Object.entries(part)) if (name !== "example") reached(inner, `${place}/${name}`, seen);
  if ("$ref" in part && typeof part.$ref === "string") {
    const name = part.$ref.split("/").at(-1) ?? "";
    reached(schemas[name], name, seen);
  }
}

test("no schema of an answer or event is closed, and each names its known values in the description", () => {
  const seen = new Map<unknown, string>();
  for (const { responses: own } of operations) reached(own, "answers", seen);
  reached(responses, "problems", seen);
  for (const { event, schema } of eventTypes()) reached(schema, event, seen);
  let lists = 0;
  for (const [part, place] of seen) {
    if (!isSchema(part)) continue;
    const { additionalProperties, unevaluatedProperties, enum: values, format, [KNOWN_VALUES]: open } = part;
    expect([additionalProperties, unevaluatedProperties], place).not.toContain(false);
    if (!isSchema(values)) expect(values, place).toBeUndefined();
    if (format === "date-time") expect(part, place).not.toHaveProperty("pattern");
    for (const value of Array.isArray(open) ? open : []) expect(part.description, place).toContain(`\`${value}\``);
    if (open !== undefined) lists++;
  }
  expect(lists).toBeGreaterThan(40);
});

test("lists of values in requests are closed, even if the same list in answers is open", () => {
  const field = (component: string, name: string) => {
    const { properties } = schemas[component] ?? {};
    return isSchema(properties) && isSchema(properties[name]) ? resolved(properties[name]) : {};
  };
  expect(field("NewUser", "role")).toMatchObject({ enum: ["sales", "admin", "owner"] });
  expect(field("User", "role")).toMatchObject({ type: "string", [KNOWN_VALUES]: ["sales", "admin", "owner"] });
  expect(field("AppointmentPatch", "status")).toHaveProperty("enum");
  expect(field("Appointment", "status")).toHaveProperty([KNOWN_VALUES]);
});
