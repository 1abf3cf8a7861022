/** Creates, changes and deletes single resources of the simulated account, according to the rules for their types. */
import type { Fields } from "../../infra/template.ts";
import { type Account, find, givenName, type Made, newName, ServiceError } from "./account.ts";
import { serviceRules } from "./service-rules.ts";
import { propertyFaults, specOf } from "./spec.ts";

export function create(
  account: Account,
  {
    type,
    properties,
    stackName,
    ...owner
  }: NonNullable<Made["owner"]> & Omit<Made, "id" | "owner"> & { stackName: string },
): Made {
  if (account.failing.has(owner.logicalId)) throw new ServiceError("The service is unavailable");
  check(type, properties);
  const id = givenName(type, properties) ?? newName(type, stackName, owner.logicalId);
  if (find(account, type, id) !== undefined) throw new ServiceError(`${type} ${id} already exists`);
  serviceRules[type]?.create?.(account, properties);
  const made: Made = { type, id, properties: named(type, id, properties), owner };
  account.resources.push(made);
  if (type === "AWS::S3::Bucket") account.objects.set(id, new Map());
  return made;
}

export function change(account: Account, made: Made, properties: Fields): void {
  check(made.type, properties);
  serviceRules[made.type]?.create?.(account, properties, made);
  made.properties = named(made.type, made.id, properties);
}

/** Adds the name that AWS has generated for the resource to the resource's settings, as if the template contained this name. */
function named(type: string, id: string, properties: Fields): Fields {
  const { primaryIdentifier, properties: known } = specOf(type);
  const [name, ...more] = primaryIdentifier;
  return name !== undefined && more.length === 0 && name in known ? { [name]: id, ...properties } : properties;
}

function check(type: string, properties: Fields): void {
  const faults = propertyFaults(type, properties);
  if (faults.length > 0) throw new ServiceError(`Properties validation failed for ${type}: ${faults.join("; ")}`);
}

export function remove(account: Account, made: Made): void {
  serviceRules[made.type]?.remove?.(account, made);
  account.resources.splice(account.resources.indexOf(made), 1);
  if (made.type === "AWS::S3::Bucket") account.objects.delete(made.id);
  if (made.type !== "AWS::ApiGateway::RestApi") return;
  const parts = account.resources.filter(
    ({ type, properties }) => /Stage|Deployment/.test(type) && properties.RestApiId === made.id,
  );
  for (const part of parts) account.resources.splice(account.resources.indexOf(part), 1);
}
