/** Builds the JSON Schemas of the OpenAPI document from zod schemas and their descriptions. Each named schema becomes a component. */
import { isDeepStrictEqual } from "node:util";
import * as z from "zod/mini";
import { type SchemaText, textOf } from "#shared/documentation.ts";
import { namingValues, openSchema, withoutTimePattern } from "#shared/open-schema.ts";
import { recordTexts } from "#shared/schema.ts";
import { type JsonSchema, portable, tupleAsArray } from "./portable.ts";

const JsonObject = z.record(z.string(), z.unknown());
const Converted = z.looseObject({ $defs: z._default(z.record(z.string(), JsonObject), {}) });

/** `input` describes what a client sends, and `output` what it receives. */
export type Direction = "input" | "output";

export type Components = ReturnType<typeof collectComponents>;

export function collectComponents() {
  const components = new Map<string, JsonSchema>();

  function add(name: string, shape: JsonSchema): void {
    const earlier = components.get(name);
    if (earlier !== undefined && !isDeepStrictEqual(earlier, shape)) {
      throw new Error(`the schema named ${name} has one shape as input and another as output: name them apart`);
    }
    components.set(name, shape);
  }

  return {
    /** Returns a reference to a component if the schema has a name. Throws if two schemas with the same name differ. */
    schema(source: z.ZodMiniType, direction: Direction): JsonSchema {
      const { shape, named } = convert(source, direction);
      for (const { name, schema, definition } of named) add(name, withTexts(definition, textOf(schema)));
      return "$ref" in shape ? shape : withTexts(shape, textOf(source));
    },
    /** Adds a schema that does not come from a zod schema, and returns a reference to it. */
    define(name: string, schema: JsonSchema): JsonSchema {
      add(name, schema);
      return { $ref: `#/components/schemas/${name}` };
    },
    parameters,
    all: (): Record<string, JsonSchema> => Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** Converts a zod schema. JSON Schema has no transforms, so `input` describes the value before a transform, `output` the value after it. */
function convert(source: z.ZodMiniType, io: Direction) {
  const schemas = new Map<string, z.core.$ZodType>();
  const converted = z.toJSONSchema(source, {
    io,
    unrepresentable: "any",
    target: "draft-2020-12",
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === "tuple") tupleAsArray(jsonSchema);
      if (io === "output") openSchema(jsonSchema);
      else withoutTimePattern(jsonSchema);
      const name = z.globalRegistry.get(zodSchema)?.id;
      if (name !== undefined) schemas.set(name, zodSchema);
    },
  });
  // A request accepts only the listed values, but a response may get new ones. So the list of a request is a component of its own.
  const closed = (name: string): boolean => io === "input" && Array.isArray(converted.$defs?.[name]?.enum);
  const componentOf = (name: string): string => (closed(name) ? `${name}Input` : name);
  const text = JSON.stringify(converted).replaceAll(
    /"#\/\$defs\/(\w+)"/g,
    (_, name: string) => `"#/components/schemas/${componentOf(name)}"`,
  );
  const { $defs, $schema: _, ...shape } = Converted.parse(portable(JsonObject.parse(JSON.parse(text))));
  const named = Object.entries($defs).map(([name, { id: _id, ...definition }]) => {
    const schema = schemas.get(name);
    if (schema === undefined) throw new Error(`zod names no schema ${name}`);
    return { name: componentOf(name), schema, definition };
  });
  return { shape, named };
}

const Described = z.looseObject({ description: z.optional(z.string()) });
const WithFields = z.looseObject({ properties: z.record(z.string(), Described) });
const commonTexts: Readonly<Record<string, string>> = recordTexts;

/** Adds descriptions to the fields. A field that is a `$ref` gets none, because tools show the description of its component. */
function withTexts(shape: JsonSchema, { fields = {} }: SchemaText): JsonSchema {
  const object = WithFields.safeParse(shape).data;
  if (object === undefined) return shape;
  const properties = Object.entries(object.properties).map(([field, schema]) => {
    const own = fields[field];
    const text = typeof own === "object" ? own.description : own;
    const description = namingValues(schema, text ?? schema.description ?? commonTexts[field]);
    return [field, description === undefined || "$ref" in schema ? schema : { ...schema, description }];
  });
  return { ...shape, properties: Object.fromEntries(properties) };
}

/** The schema of an object with its fields. A `$ref` has no fields, so it does not match. */
const ObjectShape = z.looseObject({
  type: z.literal("object"),
  properties: z.record(z.string(), JsonObject),
  required: z._default(z.array(z.string()), []),
});

/**
 * Returns the fields of an object schema as parameters. A client sends text. If the service converts it to a whole number, the parameter
 * has the type integer, from which client generators create better code.
 *
 * Swagger UI and Prism would also send the example of an optional filter, which would then hide most items of a list. So only a required
 * parameter has an `example`. The description of an optional one contains its example.
 */
function parameters(source: z.ZodMiniType) {
  const { fields = {} } = textOf(source);
  const asSent = ObjectShape.parse(convert(source, "input").shape);
  const asRead = ObjectShape.parse(convert(source, "output").shape);
  return Object.entries(asSent.properties).map(([name, sent]) => {
    const read = asRead.properties[name] ?? {};
    const required = asSent.required.includes(name);
    const text = fields[name];
    if (typeof text !== "object") throw new Error(`the parameter ${name} has no description with an example`);
    const shape = text.schema === undefined ? (read.type === "integer" ? read : sent) : portable(text.schema);
    const { description, example } = text;
    return {
      name,
      required,
      schema: shape,
      ...(required ? { description, example } : { description: `${description} Example: \`${example}\`.` }),
    };
  });
}
