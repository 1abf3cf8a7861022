/** Tests that the OpenAPI document describes exactly the routes, parameters, limits and rights of the deployed API. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import * as limits from "#shared/limits.ts";
import { KNOWN_VALUES } from "#shared/open-schema.ts";
import { OPENAPI_30_FILE, OPENAPI_FILE } from "../../../infra/build/bundle.ts";
import { asText, openApiDocument } from "../../../infra/openapi/generate.ts";
import { asVersion30 } from "../../../infra/openapi/version30.ts";
import { routes } from "../../../infra/routes/routes.ts";
import { at, listed } from "../template.ts";

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

  it("has every operation in a section", () => {
    const sections = document.tags.map(({ name }) => name);
    for (const { name, operation } of operations) expect(sections, name).toContain(at(operation, "tags", 0));
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
