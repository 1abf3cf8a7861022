/**
 * Reads AWS's public schemas of the CloudFormation resource types: their main identifier, and the properties whose change
 * replaces the resource.
 */
import { loadAwsServiceSpecSync } from "@aws-cdk/aws-service-spec";

const database = loadAwsServiceSpecSync();
type Schema = ReturnType<typeof database.all<"resource">>[number];
export type ResourceSpec = Pick<Schema, "properties" | "arnTemplate"> & {
  readonly primaryIdentifier: readonly string[];
};

/** Matches the types of custom resources. A function of the template creates them, so AWS does not know their properties. */
const CUSTOM = /^Custom::[\w@-]{1,60}$/;
const custom: ResourceSpec = { properties: {}, primaryIdentifier: [] };

/** Returns the schema of a resource type. Throws if AWS has no such type. */
export function specOf(type: string): ResourceSpec {
  if (CUSTOM.test(type)) return custom;
  const [schema] = database.lookup("resource", "cloudFormationType", "equals", type);
  if (schema === undefined) throw new Error(`Template format error: Unrecognized resource types: [${type}]`);
  return { ...schema, primaryIdentifier: schema.primaryIdentifier ?? [] };
}

/** Returns those properties in `changed` whose change makes CloudFormation replace the resource. */
export function replacing(type: string, changed: readonly string[]): string[] {
  const { properties } = specOf(type);
  return changed.filter((name) => properties[name]?.causesReplacement === "yes");
}
