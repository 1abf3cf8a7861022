/** Tests the check for changes of the OpenAPI document that break clients. It must find such changes, and must allow additions. */
import { expect, test } from "vitest";
import { breakingChanges, contractOf } from "../../../infra/openapi/breaking.ts";
import { openApiDocument } from "../../../infra/openapi/generate.ts";
import { packageVersion, recorded } from "../../../infra/release/releases.ts";

interface Parts {
  readonly query?: object;
  readonly isQueryRequired?: boolean;
  readonly body?: object;
  readonly isBodyRequired?: boolean;
  readonly bodyType?: string;
  readonly answer?: object;
  readonly answerType?: string;
  readonly status?: string;
  readonly headers?: object;
  readonly components?: object;
  readonly operation?: object;
  readonly path?: string;
  readonly method?: string;
  readonly event?: object;
}

/** Returns a document with one operation. The parameters replace parts of the operation. */
function document({
  query,
  isQueryRequired = false,
  body = { type: "object" },
  isBodyRequired = false,
  bodyType = "application/json",
  answer = { type: "object" },
  answerType = "application/json",
  status = "200",
  headers = {},
  components = {},
  operation = {},
  path = "/api/things",
  method = "post",
  event,
}: Parts): object {
  const parameters = query === undefined ? [] : [{ name: "q", in: "query", required: isQueryRequired, schema: query }];
  return {
    openapi: "3.1.0",
    info: { version: "1.0.0" },
    paths: {
      [path]: {
        [method]: {
          operationId: "thing",
          parameters,
          requestBody: { required: isBodyRequired, content: { [bodyType]: { schema: body } } },
          responses: { [status]: { headers, content: { [answerType]: { schema: answer } } } },
          ...operation,
        },
      },
    },
    webhooks: event === undefined ? {} : { "thing.created": { post: { requestBody: sent(event) } } },
    components,
  };
}

const sent = (schema: object) => ({ content: { "application/json": { schema } } });

const text = { type: "string" };
const object = (properties: object, ...required: string[]) => ({ type: "object", properties, required });
const choice = (...values: string[]) => ({ type: "string", enum: values });
const open = (...values: string[]) => ({ type: "string", "x-extensible-enum": values });
const orNull = { type: ["string", "null"] };
const named = (schema: object) => ({ schemas: { Thing: schema } });
const reference = { $ref: "#/components/schemas/Thing" };
const tree = (extra: object) => ({
  Tree: object({ ...extra, children: { type: "array", items: { $ref: "#/components/schemas/Tree" } } }),
});
const treeAnswer = { $ref: "#/components/schemas/Tree" };

const breaking: [change: string, before: Parts, after: Parts, problem: string][] = [
  ["a path is removed", {}, { path: "/api/others" }, "POST /api/things is gone"],
  ["a method is removed", {}, { method: "put" }, "POST /api/things is gone"],
  ["an operation is renamed", {}, { operation: { operationId: "other" } }, "operationId is other"],
  ["a public operation needs a token", { operation: { security: [] } }, {}, "needs a token"],
  ["a parameter is removed", { query: text }, {}, "query parameter q is gone"],
  ["a parameter becomes required", { query: text }, { query: text, isQueryRequired: true }, "q is required"],
  ["a required parameter is added", {}, { query: text, isQueryRequired: true }, "q is required"],
  ["a parameter has another type", { query: text }, { query: { type: "integer" } }, "may be string, not only integer"],
  ["a parameter has fewer values", { query: choice("a", "b") }, { query: choice("a") }, 'may be "b"'],
  ["a parameter gets a list of values", { query: text }, { query: choice("a") }, "may have any value"],
  ["a parameter gets a pattern", { query: text }, { query: { ...text, pattern: "^a" } }, "pattern"],
  ["a request body becomes required", {}, { isBodyRequired: true }, "the request body is required"],
  ["a request body has another type", {}, { bodyType: "text/csv" }, "(application/json) is not accepted"],
  ["a field of a body is removed", { body: object({ a: text }) }, { body: object({}) }, "at a is gone"],
  [
    "a field of a body becomes required",
    { body: object({ a: text }) },
    { body: object({ a: text }, "a") },
    "at a is required",
  ],
  ["a required field is added to a body", { body: object({}) }, { body: object({ a: text }, "a") }, "at a is required"],
  [
    "a field of a body refuses null",
    { body: object({ a: orNull }) },
    { body: object({ a: text }) },
    "at a may be null",
  ],
  [
    "a text of a body is shorter",
    { body: { ...text, maxLength: 9 } },
    { body: { ...text, maxLength: 8 } },
    "maxLength 8",
  ],
  ["a text of a body gets a limit", { body: text }, { body: { ...text, maxLength: 8 } }, "maxLength 8"],
  [
    "a number of a body is larger",
    { body: { type: "integer" } },
    { body: { type: "integer", minimum: 1 } },
    "minimum 1",
  ],
  [
    "an array of a body has fewer items",
    { body: { type: "array" } },
    { body: { type: "array", maxItems: 2 } },
    "maxItems 2",
  ],
  ["a choice of a body is removed", { body: { anyOf: [text, object({})] } }, { body: text }, "may be object"],
  ["an answer is removed", {}, { status: "202" }, "the answer 200 is gone"],
  ["an answer has another type", {}, { answerType: "text/csv" }, "(application/json) is gone"],
  ["a header of an answer is removed", { headers: { Location: {} } }, {}, "the header Location"],
  ["a field of an answer is removed", { answer: object({ a: text }) }, { answer: object({}) }, "at a is gone"],
  [
    "a field of an answer may be missing",
    { answer: object({ a: text }, "a") },
    { answer: object({ a: text }) },
    "at a may be missing",
  ],
  [
    "a field of an answer may be null",
    { answer: object({ a: text }) },
    { answer: object({ a: orNull }) },
    "at a may be null",
  ],
  [
    "a field of an answer has another type",
    { answer: object({ a: text }) },
    { answer: object({ a: { type: "number" } }) },
    "at a may be number",
  ],
  ["an answer has a further value", { answer: choice("a") }, { answer: choice("a", "b") }, 'may be "b"'],
  [
    "an answer has a further choice",
    { answer: { oneOf: [text] } },
    { answer: { oneOf: [text, object({})] } },
    "has no matching choice",
  ],
  ["an answer loses a known value", { answer: open("a", "b") }, { answer: open("a") }, 'is never "b" any more'],
  ["an answer's list of values is opened", { answer: choice("a") }, { answer: open("a") }, "may have any value"],
  [
    "a closed answer gets a field",
    { answer: { ...object({}), additionalProperties: false } },
    { answer: object({ a: text }) },
    "at a is new",
  ],
  ["an event is removed", { event: object({}) }, {}, "the event thing.created (application/json) is gone"],
  ["a field of an event is removed", { event: object({ a: text }) }, { event: object({}) }, "at a is gone"],
  ["an answer has any value", { answer: choice("a") }, { answer: text }, "may have any value"],
  ["an answer has another format", { answer: { ...text, format: "date-time" } }, { answer: text }, "has the format"],
  [
    "an item of an answer changes",
    { answer: { type: "array", items: text } },
    { answer: { type: "array", items: orNull } },
    "at [] may be null",
  ],
  [
    "a value by name changes",
    { answer: { type: "object", additionalProperties: text } },
    { answer: { type: "object", additionalProperties: orNull } },
    "at * may be null",
  ],
  [
    "a component changes",
    { answer: reference, components: named(object({ a: text })) },
    { answer: reference, components: named(object({})) },
    "at a is gone",
  ],
  [
    "a component that contains itself changes",
    { answer: treeAnswer, components: { schemas: tree({ a: text }) } },
    { answer: treeAnswer, components: { schemas: tree({}) } },
    "at a is gone",
  ],
  ["a schema has an unknown keyword", {}, { answer: { type: "object", not: {} } }, "not"],
];

test.each(breaking)("a change breaks clients: %s", (_, before, after, problem) => {
  const found = breakingChanges(document(before), document(after));
  expect(found).toHaveLength(1);
  expect(found[0]).toContain(problem);
});

const additions: [change: string, before: Parts, after: Parts][] = [
  ["nothing", {}, {}],
  ["an optional parameter", {}, { query: text }],
  ["a parameter that becomes optional", { query: text, isQueryRequired: true }, { query: text }],
  ["a further value of a parameter", { query: choice("a") }, { query: choice("a", "b") }],
  ["an optional field of a body", { body: object({}) }, { body: object({ a: text }) }],
  ["null in a body", { body: object({ a: text }) }, { body: object({ a: orNull }) }],
  ["a longer text of a body", { body: { ...text, maxLength: 8 } }, { body: { ...text, maxLength: 9 } }],
  ["a number instead of an integer in a body", { body: { type: "integer" } }, { body: { type: "number" } }],
  ["a further choice of a body", { body: text }, { body: { anyOf: [text, object({})] } }],
  ["a field of an answer", { answer: object({}) }, { answer: object({ a: text }, "a") }],
  ["a field of an answer that is always there", { answer: object({ a: text }) }, { answer: object({ a: text }, "a") }],
  ["a longer text of an answer", { answer: { ...text, maxLength: 8 } }, { answer: { ...text, maxLength: 9 } }],
  ["a further known value of an answer", { answer: open("a") }, { answer: open("a", "b") }],
  ["known values that are the only ones", { answer: open("a") }, { answer: choice("a") }],
  ["a further event", {}, { event: object({}) }],
  ["a field of an event", { event: object({}) }, { event: object({ a: text }, "a") }],
  ["fewer values of an answer", { answer: choice("a", "b") }, { answer: choice("a") }],
  ["an error less", { status: "409" }, { status: "422" }],
  ["no token any more", {}, { operation: { security: [] } }],
];

test.each(additions)("a change breaks no client: %s", (_, before, after) => {
  expect(breakingChanges(document(before), document(after))).toEqual([]);
});

test("the API breaks no client of the last release, and has the version of the package", async () => {
  const current = await openApiDocument();
  expect(breakingChanges(recorded("openapi"), current)).toEqual([]);
  expect(current.info.version).toBe(packageVersion());
});

test("a recorded contract has no texts, and compares like the whole document", async () => {
  const current = await openApiDocument();
  const recorded = contractOf(current);
  expect(JSON.stringify(recorded)).not.toContain('"example"');
  expect(breakingChanges(recorded, current)).toEqual([]);
  expect(breakingChanges(current, recorded)).toEqual([]);
});
