/**
 * Reads AWS's specification of the CloudFormation resource types, which is part of the `cdk` package. For each type, it lists the
 * properties, the attributes, the main identifier, and the properties whose change replaces the resource.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";
import { at, type Fields, isFields, listed } from "../../infra/template.ts";

const Property = z.looseObject({
  type: z.looseObject({ type: z.string() }),
  required: z.optional(z.boolean()),
  causesReplacement: z.optional(z.enum(["yes", "no", "maybe"])),
});
const Resource = z.looseObject({
  properties: z.record(z.string(), Property),
  attributes: z.record(z.string(), z.unknown()),
  primaryIdentifier: z._default(z.array(z.string()), []),
  arnTemplate: z.optional(z.string()),
});
export type ResourceSpec = z.infer<typeof Resource>;
type PropertyType = z.infer<typeof Property>["type"];

const Definition = z.looseObject({ properties: z.record(z.string(), Property) });

const database: unknown = JSON.parse(
  gunzipSync(readFileSync(join(root, "node_modules/aws-cdk/db.json.gz"))).toString("utf8"),
);
const entities = (kind: string): readonly unknown[] => listed(at(database, "schema", kind, "entities"));
const resources = new Map(entities("resource").map((entity) => [at(entity, "cloudFormationType"), entity]));
const definitions = new Map(entities("typeDefinition").map((entity) => [at(entity, "$id"), entity]));
const parsed = new Map<string, ResourceSpec>();

/** Matches the types of custom resources. A function of the template creates them, so AWS does not know their properties. */
const CUSTOM = /^Custom::[\w@-]{1,60}$/;
const custom: ResourceSpec = { properties: {}, attributes: {}, primaryIdentifier: [] };

/** Returns the specification of a resource type. Throws if AWS has no such type. */
export function specOf(type: string): ResourceSpec {
  if (CUSTOM.test(type)) return custom;
  const known = parsed.get(type);
  if (known !== undefined) return known;
  if (!resources.has(type)) throw new Error(`Template format error: Unrecognized resource types: [${type}]`);
  const spec = z.parse(Resource, resources.get(type));
  parsed.set(type, spec);
  return spec;
}

/** Returns the errors in the properties of a resource: unknown properties, missing properties, and values of a wrong type. */
export function propertyFaults(type: string, properties: Fields): string[] {
  if (CUSTOM.test(type)) return properties.ServiceToken === undefined ? ["Property ServiceToken is required"] : [];
  return objectFaults(specOf(type).properties, properties, "");
}

function objectFaults(known: ResourceSpec["properties"], value: Fields, place: string): string[] {
  const unknown = Object.keys(value).filter((name) => !(name in known));
  const missing = Object.entries(known).filter(
    ([name, { required }]) => required === true && value[name] === undefined,
  );
  return [
    ...unknown.map((name) => `Encountered unsupported property ${place}${name}`),
    ...missing.map(([name]) => `Property ${place}${name} is required`),
    ...Object.entries(value).flatMap(([name, part]) => {
      const property = known[name];
      return property === undefined ? [] : valueFaults(property.type, part, `${place}${name}`);
    }),
  ];
}

const wrong = (place: string, expected: string): string[] => [`Value of property ${place} must be of type ${expected}`];

function valueFaults(expected: PropertyType, value: unknown, place: string): string[] {
  switch (expected.type) {
    case "array": {
      if (!Array.isArray(value)) return wrong(place, "List");
      return value.flatMap((part, i) => valueFaults(partOf(expected), part, `${place}/${i}`));
    }
    case "map":
      if (!isFields(value) || Array.isArray(value)) return wrong(place, "Map");
      return Object.entries(value).flatMap(([key, part]) => valueFaults(partOf(expected), part, `${place}/${key}`));
    case "ref": {
      if (!isFields(value) || Array.isArray(value)) return wrong(place, "Object");
      const definition = z.parse(Definition, definitions.get(at(expected, "reference", "$ref")));
      return objectFaults(definition.properties, value, `${place}/`);
    }
    case "union": {
      const all = listed(at(expected, "types")).map((one) =>
        valueFaults(z.parse(Property.shape.type, one), value, place),
      );
      return all.some(({ length }) => length === 0) ? [] : (all[0] ?? []);
    }
    case "boolean":
      return typeof value === "boolean" || value === "true" || value === "false" ? [] : wrong(place, "Boolean");
    case "integer":
    case "number":
      return isFields(value) || value === "" || !Number.isFinite(Number(value)) ? wrong(place, "Number") : [];
    case "string":
    case "date-time":
      return isFields(value) ? wrong(place, "String") : enumFaults(expected, value, place);
    default:
      return [];
  }
}

const partOf = (list: PropertyType): PropertyType => z.parse(Property.shape.type, list.element);

function enumFaults(expected: PropertyType, value: unknown, place: string): string[] {
  const allowed = listed(expected.allowedValues);
  return allowed.length === 0 || allowed.includes(value)
    ? []
    : [`${place}: ${String(value)} is not a valid enum value`];
}

/** Returns those properties in `changed` whose change makes CloudFormation replace the resource. */
export function replacing(type: string, changed: readonly string[]): string[] {
  const { properties } = specOf(type);
  return changed.filter((name) => properties[name]?.causesReplacement === "yes");
}
