/** The components of the OpenAPI document: every schema with a name stands there once, whoever uses it. */
import { isDeepStrictEqual } from "node:util";
import * as z from "zod/mini";
import { fields, schemas } from "./prose.ts";

export type JsonSchema = { readonly [key: string]: unknown };

const JsonObject = z.record(z.string(), z.unknown());
const Converted = z.looseObject({ $defs: z.optional(z.record(z.string(), JsonObject)) });

/** `input` is what a client sends, `output` what it gets. */
export type Direction = "input" | "output";

export interface Components {
  /** The schema as JSON Schema 2020-12: a reference where it has a name. Throws when one name would have two shapes. */
  schema(source: z.ZodMiniType, direction: Direction): JsonSchema;
  /** All named schemas so far, by name. */
  all(): Record<string, JsonSchema>;
}

export function collectComponents(): Components {
  const components = new Map<string, JsonSchema>();

  function add(name: string, shape: JsonSchema): void {
    const earlier = components.get(name);
    if (earlier !== undefined && !isDeepStrictEqual(earlier, shape)) {
      throw new Error(`the schema named ${name} has one shape as input and another as output: name them apart`);
    }
    components.set(name, shape);
  }

  return {
    schema(source, direction) {
      const { $defs = {}, $schema: _, ...shape } = convert(source, direction);
      for (const [name, definition] of Object.entries($defs)) {
        const { id: _name, ...named } = definition;
        add(name, named);
      }
      return shape;
    },
    all: () =>
      Object.fromEntries(
        [...components].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, shape]) => [name, explained(shape, name)]),
      ),
  };
}

/** A transform has no JSON Schema: what goes into it is described, and of what comes out, what a later step checks. */
function convert(source: z.ZodMiniType, io: Direction): z.infer<typeof Converted> {
  const schema = z.toJSONSchema(source, { io, unrepresentable: "any", target: "draft-2020-12" });
  return Converted.parse(JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')));
}

const Described = z.looseObject({ description: z.optional(z.string()) });
const WithFields = z.looseObject({ properties: z.record(z.string(), Described) });

/** With what the prose says of the schema and its fields, where they say nothing of themselves. No name: a schema in place. */
export function explained(shape: JsonSchema, name: string): JsonSchema {
  const object = WithFields.safeParse(shape).data;
  if (object === undefined) return shape;
  const properties = Object.entries(object.properties).map(([field, schema]) => {
    const description = schema.description ?? fields[`${name}.${field}`] ?? fields[field];
    return [field, description === undefined || "$ref" in schema ? schema : { ...schema, description }];
  });
  const description = shape.description ?? schemas[name];
  return {
    ...shape,
    properties: Object.fromEntries(properties),
    ...(description !== undefined && { description }),
  };
}

export interface Parameter {
  readonly name: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
}

/** A schema with a name would be a reference here, without fields of its own. */
const ObjectShape = z.looseObject({
  type: z.literal("object"),
  properties: z.record(z.string(), JsonObject),
  required: z._default(z.array(z.string()), []),
});

/**
 * The fields of an object schema as parameters. A parameter is text on the wire; where the service reads a whole number
 * from it, that is what is told, because client generators make better code of it.
 */
export function parameters(components: Components, source: z.ZodMiniType): Parameter[] {
  const asSent = ObjectShape.parse(components.schema(source, "input"));
  const asRead = ObjectShape.parse(components.schema(source, "output"));
  return Object.entries(asSent.properties).map(([name, sent]) => {
    const read = asRead.properties[name] ?? {};
    return { name, required: asSent.required.includes(name), schema: read.type === "integer" ? read : sent };
  });
}
