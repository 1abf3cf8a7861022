/**
 * Compares resources with AWS's public schemas of the CloudFormation resource types: their properties, attributes, main identifier, and the
 * properties whose change replaces the resource.
 */
import { loadAwsServiceSpecSync } from "@aws-cdk/aws-service-spec";
import { type Fields, isFields } from "../../infra/template.ts";

const database = loadAwsServiceSpecSync();
type Schema = ReturnType<typeof database.all<"resource">>[number];
type PropertyType = Schema["properties"][string]["type"];
export type ResourceSpec = Pick<Schema, "properties" | "attributes" | "arnTemplate"> & {
  readonly primaryIdentifier: readonly string[];
};

/** Matches the types of custom resources. A function of the template creates them, so AWS does not know their properties. */
const CUSTOM = /^Custom::[\w@-]{1,60}$/;
const custom: ResourceSpec = { properties: {}, attributes: {}, primaryIdentifier: [] };

/** Returns the schema of a resource type. Throws if AWS has no such type. */
export function specOf(type: string): ResourceSpec {
  if (CUSTOM.test(type)) return custom;
  const [schema] = database.lookup("resource", "cloudFormationType", "equals", type);
  if (schema === undefined) throw new Error(`Template format error: Unrecognized resource types: [${type}]`);
  return { ...schema, primaryIdentifier: schema.primaryIdentifier ?? [] };
}

/**
 * Returns the errors in the properties of a resource: unknown properties, missing properties, and values of a wrong type. Only a deployment
 * knows the values of intrinsic functions such as `Ref`.
 */
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

const isIntrinsic = (value: unknown): boolean => {
  const [name, ...more] = isFields(value) ? Object.keys(value) : [];
  return more.length === 0 && (name === "Ref" || name?.startsWith("Fn::") === true);
};

function valueFaults(expected: PropertyType, value: unknown, place: string): string[] {
  if (isIntrinsic(value)) return [];
  switch (expected.type) {
    case "array": {
      if (!Array.isArray(value)) return wrong(place, "List");
      return value.flatMap((part, i) => valueFaults(expected.element, part, `${place}/${i}`));
    }
    case "map":
      if (!isFields(value) || Array.isArray(value)) return wrong(place, "Map");
      return Object.entries(value).flatMap(([key, part]) => valueFaults(expected.element, part, `${place}/${key}`));
    case "ref": {
      if (!isFields(value) || Array.isArray(value)) return wrong(place, "Object");
      return objectFaults(database.get("typeDefinition", expected.reference).properties, value, `${place}/`);
    }
    case "union": {
      const all = expected.types.map((one) => valueFaults(one, value, place));
      return all.some(({ length }) => length === 0) ? [] : (all[0] ?? []);
    }
    case "boolean":
      return typeof value === "boolean" || value === "true" || value === "false" ? [] : wrong(place, "Boolean");
    case "integer":
    case "number":
      return isFields(value) || value === "" || !Number.isFinite(Number(value)) ? wrong(place, "Number") : [];
    case "string":
      return isFields(value) ? wrong(place, "String") : enumFaults(expected.allowedValues, value, place);
    case "date-time":
      return isFields(value) ? wrong(place, "String") : [];
    default:
      return [];
  }
}

function enumFaults(allowed: readonly string[] = [], value: unknown, place: string): string[] {
  return allowed.length === 0 || allowed.some((one) => one === value)
    ? []
    : [`${place}: ${String(value)} is not a valid enum value`];
}

/** Returns those properties in `changed` whose change makes CloudFormation replace the resource. */
export function replacing(type: string, changed: readonly string[]): string[] {
  const { properties } = specOf(type);
  return changed.filter((name) => properties[name]?.causesReplacement === "yes");
}
