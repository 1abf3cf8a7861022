/** Converts the OpenAPI 3.1 document to OpenAPI 3.0, which the client generators for Kotlin, Swift and Dart need. */
import { isSchema, type JsonSchema, typesOf, valueOrNull, withInner } from "./portable.ts";

/**
 * Returns the document as OpenAPI 3.0. Converts its schemas, and removes the examples of request and response bodies. Client generators
 * do not use examples. Validators would refuse an example that contains null in a field whose schema is a `$ref` (see `nullable`).
 */
export const asVersion30 = (document: object): object => {
  const fields = Object.entries(document).map(([name, value]) => [name, converted(value)]);
  return { ...Object.fromEntries(fields), openapi: "3.0.3" };
};

function converted(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(converted);
  if (!isSchema(part)) return part;
  return changed(part, (value, name) => {
    if (name === "schema" && isSchema(value)) return schema30(value);
    if (name === "schemas" && isSchema(value)) return changed(value, (one) => (isSchema(one) ? schema30(one) : one));
    if (name === "content" && isSchema(value)) return changed(value, (body) => converted(withoutExample(body)));
    return converted(value);
  });
}

const changed = (fields: JsonSchema, change: (value: unknown, name: string) => unknown): JsonSchema =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(value, name)]));

function withoutExample(body: unknown): unknown {
  if (!isSchema(body)) return body;
  const { example: _, ...rest } = body;
  return rest;
}

/** The keywords of OpenAPI 3.0 that the converted document may contain. */
const keywords: ReadonlySet<string> = new Set([
  ...["$ref", "type", "nullable", "enum", "default", "description", "format"],
  ...["minimum", "maximum", "minLength", "maxLength", "pattern", "items", "minItems", "maxItems"],
  ...["properties", "required", "additionalProperties", "maxProperties", "allOf", "oneOf", "discriminator"],
]);

/**
 * Converts a schema to OpenAPI 3.0. Throws if the result contains an unknown keyword. Otherwise a new keyword could be lost or have another
 * meaning.
 */
function schema30(schema: JsonSchema): JsonSchema {
  // Two keywords are removed. Client generators ignore `propertyNames`, which limits the names of an object's properties. From
  // `uniqueItems` they create a set, but the API's responses contain lists.
  const { const: constant, propertyNames: _, uniqueItems: __, ...rest } = withInner(nullable(schema), schema30);
  const written = constant === undefined ? rest : { ...rest, enum: [constant] };
  const unknown = Object.keys(written).find((keyword) => !keywords.has(keyword));
  if (unknown === undefined) return written;
  throw new Error(`OpenAPI 3.0: no rule converts the keyword ${unknown} of ${JSON.stringify(schema).slice(0, 500)}`);
}

/**
 * Marks a schema that allows null with `nullable`, as OpenAPI 3.0 requires. `nullable` needs a `type` in the same schema and must not be
 * beside a `$ref`. So a `$ref` is put into `allOf`, which generators understand. Null is removed from `enum` and `default`, because some
 * generators fail if these contain null.
 */
function nullable(schema: JsonSchema): JsonSchema {
  const value = valueOrNull(schema);
  if (value !== undefined && "$ref" in value) {
    const { anyOf: _, ...rest } = schema;
    return { ...rest, type: "object", nullable: true, allOf: [value] };
  }
  const types = typesOf(schema);
  if (!types.includes("null")) return schema;
  const [type, ...others] = types.filter((name) => name !== "null");
  if (others.length > 0) throw new Error(`OpenAPI 3.0 has one type in a schema: ${JSON.stringify(schema)}`);
  const { default: preset, enum: values, ...rest } = schema;
  return {
    ...rest,
    ...(preset != null && { default: preset }),
    ...(Array.isArray(values) && { enum: values.filter((one) => one !== null) }),
    type,
    nullable: true,
  };
}
