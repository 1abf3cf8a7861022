/**
 * Tests that the OpenAPI document describes exactly the routes, parameters, limits and rights of the deployed API, and that client
 * generators can read it: named schemas, 64-bit integers, positions as plain arrays.
 */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { KNOWN_VALUES } from "#shared/open-schema.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { OPENAPI_30_FILE, OPENAPI_FILE } from "../../../infra/build/bundle.ts";
import { asText, openApiDocument } from "../../../infra/openapi/generate.ts";
import { asVersion30 } from "../../../infra/openapi/version30.ts";
import { routes } from "../../../infra/routes/routes.ts";
import { at, type Fields, isFields, listed } from "../template.ts";

const document = await openApiDocument();

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
);

describe("the OpenAPI document", () => {
  it("is committed as the generator writes it, in both versions", () => {
    expect(readFileSync(OPENAPI_FILE, "utf8")).toBe(asText(document));
    expect(readFileSync(OPENAPI_30_FILE, "utf8")).toBe(asText(asVersion30(document)));
  });

  it("has exactly the routes of the route table", () => {
    expect(operations.map(({ name }) => name).toSorted()).toEqual(
      routes.map(({ method, path }) => `${method} ${path}`).toSorted(),
    );
  });

  it("limits each search for words to the length that the service accepts", () => {
    const searches: unknown[] = [];
    JSON.stringify(document, (key, value) => {
      // The schema of exports (`NewExport`) is left out, because it has one limit for all texts of its filters.
      if (key === "NewExport") return undefined;
      if (key === "search") searches.push(at(value, "maxLength"));
      if (at(value, "name") === "search") searches.push(at(value, "schema", "maxLength"));
      return value;
    });
    expect(searches.length).toBeGreaterThan(5);
    expect(new Set(searches)).toEqual(new Set([limits.search]));
  });

  it("takes an Idempotency-Key exactly where the function may use the rows of these keys", () => {
    const key = { name: "Idempotency-Key", in: "header" };
    for (const { method, path, access } of routes) {
      const parameters = listed(at(document.paths, path, method.toLowerCase(), "parameters"));
      const isTaken = parameters.some(
        (parameter) => at(parameter, "$ref") === "#/components/parameters/Idempotency-Key",
      );
      expect(isTaken, `${method} ${path}`).toBe(access.table?.idempotency?.includes("PutItem") ?? false);
    }
    expect(at(document.components, "parameters", "Idempotency-Key")).toMatchObject(key);
  });

  it("requires a token exactly where API Gateway does", () => {
    for (const { method, path, public: isPublic } of routes) {
      const security = at(document.paths, path, method.toLowerCase(), "security");
      expect(security, `${method} ${path}`).toEqual(isPublic ? [] : undefined);
    }
    expect(document.security).toEqual([{ accessToken: [] }]);
  });

  it("describes every schema", () => {
    for (const [name, schema] of Object.entries(document.components.schemas ?? {})) {
      expect(schema.description, name).toEqual(expect.stringMatching(/\S/));
    }
  });

  it("has schemas that a JSON Schema 2020-12 validator compiles, in strict mode", () => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, validateFormats: false });
    ajv.addSchema({ $id: "document", components: document.components }, "document");
    ajv.addVocabulary(["components", "example", "discriminator", KNOWN_VALUES]);
    for (const name of Object.keys(document.components.schemas ?? {})) {
      expect(() => ajv.compile({ $ref: `document#/components/schemas/${name}` }), name).not.toThrow();
    }
  });

  it("names the limits that a request can exceed", () => {
    const descriptionOf = (path: string, method: string) => String(at(document.paths, path, method, "description"));
    const field = (schema: string, name: string) =>
      String(at(document.components, "schemas", schema, "properties", name, "description"));
    const limit = (count: number, noun: string) => new RegExp(`\\b${count}\\b.*\\b${noun}`);
    expect(descriptionOf("/api/addresses/{id}", "patch")).toMatch(limit(limits.prospectsChangedAtOnce, ""));
    expect(descriptionOf("/api/statuses", "post")).toMatch(limit(limits.statusesPerCompany, "statuses"));
    expect(descriptionOf("/api/tags", "post")).toMatch(limit(limits.tagsPerCompany, "tags"));
    expect(descriptionOf("/api/webhooks", "post")).toMatch(limit(limits.webhooksPerCompany, "webhooks"));
    expect(descriptionOf("/api/prospects/{id}/tags", "put")).toMatch(limit(limits.tagsPerProspect, ""));
    for (const schema of ["NewProspect", "ProspectPatch"]) {
      expect(field(schema, "customFieldData")).toContain(`${limits.customFieldDepth} levels`);
      expect(field(schema, "addressId")).toContain(`At most ${limits.prospectsPerAddress} prospects`);
    }
  });

  it("says that a deleted record gives 404, and that a disabled record gives 404 only to another DELETE", () => {
    for (const { name, operation } of operations.filter(({ name }) => name.includes("{id}"))) {
      const staysReadable = /\/api\/(?:statuses|users)\//.test(name);
      const description = String(at(operation, "description"));
      expect(description.includes("only a second DELETE is 404"), name).toBe(staysReadable);
      expect(description.includes("a deleted record are all 404"), name).toBe(!staysReadable);
    }
  });

  it("states which policy for webhook URLs the deployment has", () => {
    expect(document.info["x-webhook-url-policy"]).toBe("public");
  });
});

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
const latest = versionOf(document);
const older = versionOf(asVersion30(latest.document));

const both = [
  ["3.1", latest],
  ["3.0", older],
] as const;

describe.each(both)("OpenAPI %s", (_, version) => {
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
