/** Rewrites JSON Schemas so that client generators create better code from them. */

export type JsonSchema = { readonly [key: string]: unknown };

export const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Keywords that contain schemas. No other keyword of the service's schemas does. */
const holders: Readonly<Record<string, "one" | "list" | "map">> = {
  items: "one",
  additionalProperties: "one",
  propertyNames: "one",
  anyOf: "list",
  oneOf: "list",
  properties: "map",
  $defs: "map",
};

/** Applies `change` to all schemas directly inside a schema. */
export function withInner(schema: JsonSchema, change: (inner: JsonSchema) => JsonSchema): JsonSchema {
  const changed = (value: unknown): unknown => (isSchema(value) ? change(value) : value);
  const keywords = Object.entries(schema).map(([keyword, value]) => {
    const holder = holders[keyword];
    if (holder === "list" && Array.isArray(value)) return [keyword, value.map(changed)];
    if (holder !== "map" || !isSchema(value)) return [keyword, holder === "one" ? changed(value) : value];
    return [keyword, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, changed(inner)]))];
  });
  return Object.fromEntries(keywords);
}

/**
 * Returns the schema, with all schemas inside it, in this form:
 * - A whole number has the format `int64`. Without it, generators use integers of 32 bits, but ids are larger.
 * - Any other number has the format `double`. Without it, some generators use decimal numbers of arbitrary precision.
 * - A nullable value is one schema with two types and not an `anyOf`, because generators create a class for each part of an `anyOf`.
 */
export const portable = (schema: JsonSchema): JsonSchema => withFormat(nullable(withInner(schema, portable)));

/** Changes a tuple of numbers to an array, because OpenAPI 3.0 and most generators do not support tuples. Throws for other tuples. */
export function tupleAsArray(schema: Record<string, unknown>): void {
  const { prefixItems } = schema;
  if (!Array.isArray(prefixItems) || !prefixItems.every((part) => isSchema(part) && part.type === "number")) {
    throw new Error(`no portable form of the tuple ${JSON.stringify(schema)}`);
  }
  delete schema.prefixItems;
  schema.items = { type: "number" };
}

function withFormat(schema: JsonSchema): JsonSchema {
  const [type] = typesOf(schema);
  if (type === "integer") return { ...schema, format: "int64" };
  return type === "number" ? { ...schema, format: "double" } : schema;
}

export const typesOf = ({ type }: JsonSchema): readonly unknown[] => (Array.isArray(type) ? type : [type]);

function nullable(schema: JsonSchema): JsonSchema {
  const value = valueOrNull(schema);
  if (value === undefined || typeof value.type !== "string") return schema;
  const { anyOf: _, ...rest } = schema;
  const choices = Array.isArray(value.enum) ? { enum: [...value.enum, null] } : {};
  return { ...rest, ...value, type: [value.type, "null"], ...choices };
}

/** Returns the first schema of an `anyOf` of two schemas, if the second is null. Returns undefined for any other schema. */
export function valueOrNull({ anyOf }: JsonSchema): JsonSchema | undefined {
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return undefined;
  const [value, other] = anyOf;
  return isSchema(value) && isSchema(other) && other.type === "null" ? value : undefined;
}
