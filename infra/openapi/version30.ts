/** Converts the OpenAPI 3.1 document to OpenAPI 3.0, which many client generators need. */
import { KNOWN_VALUES } from "#shared/open-schema.ts";
import { withFlatItems } from "./changes.ts";
import { isSchema, type JsonSchema, typesOf, valueOrNull, withInner } from "./portable.ts";

/**
 * Converts the schemas, and removes the examples of bodies. Client generators do not use examples, and validators would refuse an example
 * with null in a field whose schema is a `$ref` (see `nullable`). OpenAPI 3.0 has no `webhooks`, but their schemas remain, so that
 * generators make models for receivers.
 */
export const asVersion30 = (document: object): object => {
  const kept = Object.entries(document).filter(([name]) => name !== "webhooks");
  const fields = kept.map(([name, value]) => [name, converted(value)]);
  return { ...Object.fromEntries(fields), openapi: "3.0.3" };
};

function converted(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(converted);
  if (!isSchema(part)) return part;
  return changed(part, (value, name) => {
    if (name === "schema" && isSchema(value)) return schema30(value);
    if (name === "schemas" && isSchema(value)) {
      return changed(withFlatItems(value), (one) => (isSchema(one) ? schema30(one) : one));
    }
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
  ...["properties", "required", "additionalProperties", "maxProperties", "allOf"],
  KNOWN_VALUES,
]);

/** Converts a schema. Throws for a keyword that is not in `keywords`, because OpenAPI 3.0 may lack it or give it another meaning. */
function schema30(schema: JsonSchema): JsonSchema {
  // Two keywords are removed. `propertyNames` limits the names of an object's properties, and client generators ignore it. From
  // `uniqueItems`, client generators create a set. The field `permissions` of a user would then be a set in requests and a list in
  // responses.
  const converted = withInner(nullable(withObjects(withoutConst(schema))), schema30);
  const { propertyNames: _, uniqueItems: __, ...written } = converted;
  const unknown = Object.keys(written).find((keyword) => !keywords.has(keyword));
  if (unknown === undefined) return written;
  throw new Error(`OpenAPI 3.0: no rule converts the keyword ${unknown} of ${JSON.stringify(schema).slice(0, 500)}`);
}

/**
 * Replaces `const` with an `enum` of one value. A boolean is named in the description instead: from an `enum` of booleans, generators
 * create an enumeration of strings, whose code for Kotlin does not compile.
 */
function withoutConst({ const: value, ...schema }: JsonSchema): JsonSchema {
  if (value === undefined) return schema;
  if (typeof value !== "boolean") return { ...schema, enum: [value] };
  const description = [schema.description, `The only value is \`${value}\`.`].filter(Boolean).join(" ");
  return { ...schema, description };
}

/**
 * Changes two kinds of schemas for which client generators create wrong code:
 * - A schema that allows any value: `{}`, with or without a description. Generators use the type `AnyType` for it, but do not create this
 *   type. As `additionalProperties` of an object, the schema becomes `true`, which has the same meaning. Elsewhere it becomes an object
 *   with any fields: it describes the features and the `crs` of GeoJSON, which are objects.
 * - `additionalProperties` with an `enum`. The generator for Kotlin creates an enumeration instead of a map. So the `enum` is removed, and
 *   the description lists the values.
 */
function withObjects(schema: JsonSchema): JsonSchema {
  const { additionalProperties: values } = schema;
  const isAny = (value: unknown): boolean =>
    isSchema(value) && Object.keys(value).every((keyword) => keyword === "description");
  return {
    ...schema,
    ...(isAny(schema) && { type: "object", additionalProperties: true }),
    ...(isAny(values) && { additionalProperties: true }),
    ...(isSchema(values) && Array.isArray(values.enum) && { additionalProperties: withListedValues(values) }),
  };
}

function withListedValues({ enum: values, ...schema }: JsonSchema): JsonSchema {
  const names = Array.isArray(values) ? values.filter((value) => value !== null).map((value) => `\`${value}\``) : [];
  return { ...schema, description: `One of ${names.join(", ")}.` };
}

/**
 * Marks a schema that allows null with `nullable`, which needs a `type` in the same schema and must not be beside a `$ref`. So a `$ref` is
 * put into `allOf`. Null is removed from `enum` and `default`, because some generators fail if these contain null.
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
