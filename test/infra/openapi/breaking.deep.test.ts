/** Tests the check for changes of the OpenAPI document that break clients. It must find such changes, and must allow additions. */
import { expect, test } from "vitest";
import { breakingChanges, contractOf } from "../../../infra/openapi/breaking.ts";
import { openApiDocument } from "../../../infra/openapi/generate.ts";
import { packageVersion, recorded } from "../../../infra/release/releases.ts";

const empty: object = {};
const anything: object = { type: "object" };

/** Returns a document with one operation. The parameters replace parts of the operation. */
function document({
  query = empty,
  isQueryRequired = false,
  body = anything,
  isBodyRequired = false,
  bodyType = "application/json",
  answer = anything,
  answerType = "application/json",
  status = "200",
  headers = empty,
  components = empty,
  operation = empty,
  path = "/api/things",
  method = "post",
  event = empty,
} = {}): object {
  const parameters = query === empty ? [] : [{ name: "q", in: "query", required: isQueryRequired, schema: query }];
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
    webhooks: event === empty ? {} : { "thing.created": { post: { requestBody: sent(event) } } },
    components,
  };
}

const sent = (schema: object) => ({ content: { "application/json": { schema } } });

const text = { type: "string" };
const object = (properties: object, ...required: string[]) => ({ type: "object", properties, required });
const choice = (...values: string[]) => ({ type: "string", enum: values });
const open = (...values: string[]) => ({ type: "string", "x-extensible-enum": values });
const orNull = { type: ["string", "null"] };
const reference = { $ref: "#/components/schemas/Thing" };
const tree = (extra: object) => ({
  Tree: object({ ...extra, children: { type: "array", items: { $ref: "#/components/schemas/Tree" } } }),
});
const treeAnswer = { $ref: "#/components/schemas/Tree" };

/**
 * Each function returns arguments of `document` before and after a change of one schema: that of the query parameter, the body, the answer
 * or the event.
 */
const inQuery = (before: object, after: object) => [{ query: before }, { query: after }] as const;
const inBody = (before: object, after: object) => [{ body: before }, { body: after }] as const;
const inAnswer = (before: object, after: object) => [{ answer: before }, { answer: after }] as const;
const inEvent = (before: object, after: object) => [{ event: before }, { event: after }] as const;
/** Returns arguments of `document` before and after a change of the schemas to which the answer refers. */
const inSchemas = (answer: object, before: object, after: object) =>
  [
    { answer, components: { schemas: before } },
    { answer, components: { schemas: after } },
  ] as const;
const [one, none] = [object({ a: text }), object({})];
const array = (items: object) => ({ type: "array", items });
const map = (additionalProperties: object) => ({ type: "object", additionalProperties });

type Parts = Parameters<typeof document>[0];
type Change = readonly [before: Parts, after: Parts];
const breaking: Readonly<Record<string, readonly [problem: string, ...Change]>> = {
  "a path is removed": ["POST /api/things is gone", {}, { path: "/api/others" }],
  "a method is removed": ["POST /api/things is gone", {}, { method: "put" }],
  "an operation is renamed": ["operationId is other", {}, { operation: { operationId: "other" } }],
  "a public operation needs a token": ["needs a token", { operation: { security: [] } }, {}],
  "a parameter is removed": ["query parameter q is gone", { query: text }, {}],
  "a parameter becomes required": ["q is required", { query: text }, { query: text, isQueryRequired: true }],
  "a required parameter is added": ["q is required", {}, { query: text, isQueryRequired: true }],
  "a parameter has another type": ["may be string, not only integer", ...inQuery(text, { type: "integer" })],
  "a parameter has fewer values": ['may be "b"', ...inQuery(choice("a", "b"), choice("a"))],
  "a parameter gets a list of values": ["may have any value", ...inQuery(text, choice("a"))],
  "a parameter gets a pattern": ["pattern", ...inQuery(text, { ...text, pattern: "^a" })],
  "a request body becomes required": ["the request body is required", {}, { isBodyRequired: true }],
  "a request body has another type": ["(application/json) is not accepted", {}, { bodyType: "text/csv" }],
  "a field of a body is removed": ["at a is gone", ...inBody(one, none)],
  "a field of a body becomes required": ["at a is required", ...inBody(one, object({ a: text }, "a"))],
  "a required field is added to a body": ["at a is required", ...inBody(none, object({ a: text }, "a"))],
  "a field of a body refuses null": ["at a may be null", ...inBody(object({ a: orNull }), one)],
  "a text of a body is shorter": ["maxLength 8", ...inBody({ ...text, maxLength: 9 }, { ...text, maxLength: 8 })],
  "a text of a body gets a limit": ["maxLength 8", ...inBody(text, { ...text, maxLength: 8 })],
  "a number of a body is larger": ["minimum 1", ...inBody({ type: "integer" }, { type: "integer", minimum: 1 })],
  "an array of a body has fewer items": ["maxItems 2", ...inBody({ type: "array" }, { type: "array", maxItems: 2 })],
  "a choice of a body is removed": ["may be object", ...inBody({ anyOf: [text, none] }, text)],
  "an answer is removed": ["the answer 200 is gone", {}, { status: "202" }],
  "an answer has another type": ["(application/json) is gone", {}, { answerType: "text/csv" }],
  "a header of an answer is removed": ["the header Location", { headers: { Location: {} } }, {}],
  "a field of an answer is removed": ["at a is gone", ...inAnswer(one, none)],
  "a field of an answer may be missing": ["at a may be missing", ...inAnswer(object({ a: text }, "a"), one)],
  "a field of an answer may be null": ["at a may be null", ...inAnswer(one, object({ a: orNull }))],
  "a field of an answer has another type": ["may be number", ...inAnswer(one, object({ a: { type: "number" } }))],
  "an answer has a further value": ['may be "b"', ...inAnswer(choice("a"), choice("a", "b"))],
  "an answer has a further choice": ["no matching choice", ...inAnswer({ oneOf: [text] }, { oneOf: [text, none] })],
  "an answer loses a known value": ['is never "b" any more', ...inAnswer(open("a", "b"), open("a"))],
  "an answer's list of values is opened": ["may have any value", ...inAnswer(choice("a"), open("a"))],
  "a closed answer gets a field": ["at a is new", ...inAnswer({ ...none, additionalProperties: false }, one)],
  "an event is removed": ["the event thing.created (application/json) is gone", { event: none }, {}],
  "a field of an event is removed": ["at a is gone", ...inEvent(one, none)],
  "an answer has any value": ["may have any value", ...inAnswer(choice("a"), text)],
  "an answer has another format": ["has the format", ...inAnswer({ ...text, format: "date-time" }, text)],
  "an item of an answer changes": ["at [] may be null", ...inAnswer(array(text), array(orNull))],
  "a value by name changes": ["at * may be null", ...inAnswer(map(text), map(orNull))],
  "a component changes": ["at a is gone", ...inSchemas(reference, { Thing: one }, { Thing: none })],
  "a component that contains itself changes": ["at a is gone", ...inSchemas(treeAnswer, tree({ a: text }), tree({}))],
  "a schema has an unknown keyword": ["not", {}, { answer: { type: "object", not: {} } }],
};

test.each(Object.entries(breaking))("a change breaks clients: %s", (_, [problem, before, after]) => {
  const found = breakingChanges(document(before), document(after));
  expect(found).toHaveLength(1);
  expect(found[0]).toContain(problem);
});

const additions: Readonly<Record<string, Change>> = {
  nothing: [{}, {}],
  "an optional parameter": [{}, { query: text }],
  "a parameter that becomes optional": [{ query: text, isQueryRequired: true }, { query: text }],
  "a further value of a parameter": inQuery(choice("a"), choice("a", "b")),
  "an optional field of a body": inBody(none, one),
  "null in a body": inBody(one, object({ a: orNull })),
  "a longer text of a body": inBody({ ...text, maxLength: 8 }, { ...text, maxLength: 9 }),
  "a number instead of an integer in a body": inBody({ type: "integer" }, { type: "number" }),
  "a further choice of a body": inBody(text, { anyOf: [text, none] }),
  "a field of an answer": inAnswer(none, object({ a: text }, "a")),
  "a field of an answer that is always there": inAnswer(one, object({ a: text }, "a")),
  "a longer text of an answer": inAnswer({ ...text, maxLength: 8 }, { ...text, maxLength: 9 }),
  "a further known value of an answer": inAnswer(open("a"), open("a", "b")),
  "known values that are the only ones": inAnswer(open("a"), choice("a")),
  "a further event": [{}, { event: none }],
  "a field of an event": inEvent(none, object({ a: text }, "a")),
  "fewer values of an answer": inAnswer(choice("a", "b"), choice("a")),
  "an error less": [{ status: "409" }, { status: "422" }],
  "no token any more": [{}, { operation: { security: [] } }],
};

test.each(Object.entries(additions))("a change breaks no client: %s", (_, [before, after]) => {
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
