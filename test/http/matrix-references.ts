/** Lists the body fields that contain the id of another record, each with the collection of that record. */
import { readFileSync } from "node:fs";
import * as z from "zod/mini";
import type { Records } from "./matrix-stage.ts";
import type { Row } from "./matrix-table.ts";

interface Reference extends Pick<Row, "method" | "path"> {
  readonly field: string;
  readonly names: keyof Records & ("users" | "statuses" | "tags" | "addresses");
}

/** The collections of the records whose ids are in body fields. */
export const collections: Readonly<Record<string, Reference["names"]>> = {
  currentStatusId: "statuses",
  ...{ assignedToUserId: "users", assignedByUserId: "users", toUserId: "users", fromUserId: "users" },
  addressId: "addresses",
  tagIds: "tags",
};

const BodySchema = z.union([
  z.object({ $ref: z.string() }),
  z.object({ properties: z.optional(z.record(z.string(), z.unknown())) }),
]);
const Operation = z.object({
  requestBody: z.optional(
    z.object({ content: z.object({ "application/json": z.optional(z.object({ schema: BodySchema })) }) }),
  ),
});
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({
    schemas: z.record(z.string(), z.looseObject({ properties: z.optional(z.record(z.string(), z.unknown())) })),
  }),
});

/** Routes whose body is a filter. An unknown id in a filter is no error: the filter matches nothing. */
const filters: ReadonlySet<string> = new Set(["/api/prospects/exports"]);

/** Fields with ids that the client chooses. They are not ids of records of the service. */
const ownIds: ReadonlySet<string> = new Set(["sourceId", "clientRecordId", "deviceId"]);

/** The body fields in the OpenAPI document that contain the id of a record, according to their names. */
function documented(): Omit<Reference, "names">[] {
  const text = readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8");
  const { paths, components } = z.parse(Document, JSON.parse(text));
  const written = Object.entries(paths).filter(([path]) => !filters.has(path));
  return written.flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const schema = requestBody?.content["application/json"]?.schema ?? {};
      const { properties = {} } =
        "$ref" in schema ? (components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}) : schema;
      const fields = Object.keys(properties).filter((name) => /Ids?$/.test(name) && !ownIds.has(name));
      return fields.map((field) => ({ method: method.toUpperCase(), path, field }));
    }),
  );
}

export const references: readonly Reference[] = documented().map((one) => {
  const names = collections[one.field];
  if (names === undefined) throw new Error(`name the collection of ${one.field}`);
  return { ...one, names };
});
