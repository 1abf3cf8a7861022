/** The OpenAPI document with stricter schemas: they refuse fields, values and time formats of answers that the document lacks. */
import { readFileSync } from "node:fs";
import * as z from "zod/mini";
import { isSchema, type JsonSchema } from "../../infra/openapi/portable.ts";
import { KNOWN_VALUES } from "../../shared/open-schema.ts";

const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), z.object({ responses: z.unknown() }))),
  webhooks: z.optional(z.unknown()),
});
const time = String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`;

/** Reads docs/openapi.json, and closes the schemas of answers and events: they then refuse unlisted fields. Requests keep their schemas. */
export function closedDocument(): unknown {
  const document: unknown = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
  const target = (reference: string): unknown =>
    reference
      .slice(2)
      .split("/")
      .reduce((place, step) => (isSchema(place) ? place[step] : undefined), document);
  const seen = new Set<unknown>();
  function close(part: unknown): void {
    if (typeof part !== "object" || part === null || seen.has(part)) return;
    seen.add(part);
    for (const [name, value] of Object.entries(part)) if (name !== "example") close(value);
    if (!isSchema(part)) return;
    if (typeof part.$ref === "string") close(target(part.$ref));
    Object.assign(part, closing(part));
  }
  const { paths, webhooks } = z.parse(Document, document);
  close(webhooks);
  for (const methods of Object.values(paths)) {
    for (const { responses } of Object.values(methods)) close(responses);
  }
  return document;
}

function closing({ type, properties, additionalProperties, format, [KNOWN_VALUES]: values }: JsonSchema): object {
  // GeoJSON has fields with the names `properties` and `type`. The list of these fields therefore looks like a schema, but it is none, so
  // it is not closed.
  const isOpen = isSchema(properties) && !isSchema(type) && additionalProperties === undefined;
  const orNull = Array.isArray(type) && type.includes("null") ? [null] : [];
  return {
    ...(isOpen && { additionalProperties: false }),
    ...(Array.isArray(values) && { enum: [...values, ...orNull] }),
    ...(format === "date-time" && { pattern: time }),
  };
}
