/** Tests that client generators can read the OpenAPI documents: named schemas, 64-bit integers, positions as plain arrays. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { openApiDocument } from "../../../infra/openapi/generate.ts";
import { asVersion30 } from "../../../infra/openapi/version30.ts";
import { at, type Fields, isFields } from "../template.ts";

interface Found {
  readonly place: string;
  readonly fields: Fields;
}

/** Returns all objects within a value, each with its path. It leaves out examples, because they are data and not schemas. */
function objects(value: unknown, place = ""): Found[] {
  if (!isFields(value)) return [];
  const inner = Object.entries(value).filter(([name]) => name !== "example");
  const below = inner.flatMap(([name, part]) => objects(part, `${place}/${name}`));
  return Array.isArray(value) ? below : [{ place, fields: value }, ...below];
}

const versionOf = (document: object) => ({ document, found: objects(document) });
const latest = versionOf(await openApiDocument());
const older = versionOf(asVersion30(latest.document));

const both = [
  ["3.1", latest],
  ["3.0", older],
] as const;

describe.each(both)("OpenAPI %s", (_, version) => {
  it("has the shape that the official schema of its version requires", async () => {
    const { valid, errors } = await new Validator().validate({ ...version.document });
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
  });

  it("names the schema of every body", () => {
    const bodies = version.found.filter(({ place }) => /\/content\/(?:application|text|multipart)\/[^/]+$/.test(place));
    expect(bodies.length).toBeGreaterThan(80);
    for (const { place, fields } of bodies) expect(at(fields, "schema", "$ref"), place).toEqual(expect.any(String));
  });

  it("names every object with fields", () => {
    // Among the fields of a GeoJSON schema, `type` is itself a schema and not the name of a type.
    const hasType = (fields: Record<string, unknown>) => "type" in fields && !isFields(fields.type);
    const shapes = version.found.filter(({ fields }) => isFields(fields.properties) && hasType(fields));
    expect(shapes.length).toBeGreaterThan(50);
    for (const { place } of shapes) expect(place).toMatch(/^\/components\/schemas\/\w+$/);
  });

  it("reads whole numbers as 64 bits and other numbers as doubles", () => {
    const typed = version.found.map(({ place, fields }) => ({ place, fields, type: [fields.type].flat()[0] }));
    const numbers = typed.filter(({ type }) => type === "integer" || type === "number");
    expect(numbers.length).toBeGreaterThan(100);
    for (const { place, fields, type } of numbers) {
      expect(fields.format, place).toBe(type === "integer" ? "int64" : "double");
    }
  });

  it("has positions as arrays of two numbers", () => {
    for (const name of ["Territory", "NewTerritory", "TerritoryPatch"]) {
      const polygon = at(version.document, "components", "schemas", name, "properties", "polygon");
      const position = { type: "array", items: { type: "number", format: "double" }, minItems: 2, maxItems: 2 };
      expect(at(polygon, "items"), name).toEqual(position);
    }
  });
});

it("has one choice of schemas in OpenAPI 3.1: the items of the feed, which clients tell apart by their type", () => {
  const choices = latest.found.filter(({ fields }) => "oneOf" in fields || "discriminator" in fields);
  expect(choices.map(({ place }) => place)).toEqual(["/components/schemas/ChangeItem"]);
  const mapping = z.record(z.string(), z.string()).parse(at(choices[0]?.fields, "discriminator", "mapping"));
  expect(Object.keys(mapping)).toEqual(ChangeType.options);
  expect(at(choices[0]?.fields, "oneOf")).toEqual(Object.values(mapping).map(($ref) => ({ $ref })));
  for (const [type, reference] of Object.entries(mapping)) {
    const name = reference.split("/").at(-1) ?? "";
    expect(at(latest.document, "components", "schemas", name, "properties", "type", "const"), name).toBe(type);
  }
});

it("has no choice of schemas in OpenAPI 3.0: an item of the feed has one of all types, and any record", () => {
  expect(older.found.filter(({ fields }) => "oneOf" in fields || "discriminator" in fields)).toEqual([]);
  const { type, data } = z
    .object({ type: z.unknown(), data: z.looseObject({ description: z.string() }) })
    .parse(at(older.document, "components", "schemas", "ChangeItem", "properties"));
  expect(type).toMatchObject({ type: "string", "x-extensible-enum": ChangeType.options });
  expect(data).toMatchObject({ type: "object", additionalProperties: true });
  const named = [...data.description.matchAll(/`(\w+)` for the type `\w+`/g)].map(([, name = ""]) => name);
  expect(named).toHaveLength(ChangeType.options.length);
  for (const name of named) expect(at(older.document, "components", "schemas", name), name).toBeDefined();
});

it("has no schema in OpenAPI 3.0 from which generators make code that does not compile", () => {
  const isBooleanEnum = ({ type, enum: values }: Fields) => type === "boolean" && values !== undefined;
  const isAnyValue = (schema: unknown) =>
    isFields(schema) && Object.keys(schema).every((keyword) => keyword === "description");
  const hasAnyValue = ({ items, additionalProperties: values, properties }: Fields) =>
    [items, values, ...(isFields(properties) ? Object.values(properties) : [])].some(isAnyValue);
  const isMapOfEnum = ({ additionalProperties: values }: Fields) => isFields(values) && "enum" in values;
  const isTimeWithPattern = ({ format, pattern }: Fields) => format === "date-time" && pattern !== undefined;
  for (const wrong of [isBooleanEnum, hasAnyValue, isMapOfEnum, isTimeWithPattern]) {
    expect(older.found.filter(({ fields }) => wrong(fields)).map(({ place }) => place)).toEqual([]);
  }
});

const shared = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ operationId: z.string() }))),
});

it("has the same operations and schemas in both versions, apart from the choice", () => {
  const ids = (document: object) =>
    Object.entries(shared.parse(document).paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
    );
  const names = (document: object) => Object.keys(at(document, "components", "schemas") ?? {});
  expect(ids(older.document)).toEqual(ids(latest.document));
  expect(names(older.document)).toEqual(names(latest.document).filter((name) => !name.startsWith("Changed")));
});

const nullable30: ReadonlyArray<readonly [string, string, object]> = [
  ["Prospect", "name", { type: "string", nullable: true }],
  ["Prospect", "lat", { type: "number", format: "double", nullable: true }],
  ["Prospect", "address", { type: "object", nullable: true, allOf: [{ $ref: "#/components/schemas/Address" }] }],
  ["Delivery", "heldBy", { type: "string", nullable: true, "x-extensible-enum": ["pause", "breaker", "limit"] }],
  ["Upload", "method", { type: "string", enum: ["PUT"] }],
];

it.each(nullable30)("writes %s.%s in OpenAPI 3.0 as generators read it", (schema, field, expected) => {
  const { description: _, ...written } = z
    .record(z.string(), z.unknown())
    .parse(at(older.document, "components", "schemas", schema, "properties", field));
  expect(written).toEqual(expected);
});
