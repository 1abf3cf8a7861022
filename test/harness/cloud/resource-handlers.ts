/**
 * Creates, changes and deletes single resources of the simulated account. It refuses a name that is already in use, and the deletion of a
 * protected resource or of a bucket with files.
 */
import type { Fields } from "../../infra/template.ts";
import { type Account, find, givenName, type Made, newName, ServiceError } from "./account.ts";
import { specOf } from "./spec.ts";

type New = NonNullable<Made["owner"]> & Omit<Made, "id" | "owner"> & { readonly stackName: string };

export function create(account: Account, { type, properties, stackName, ...owner }: New): Made {
  if (account.failing.has(owner.logicalId)) throw new ServiceError("The service is unavailable");
  const id = givenName(type, properties) ?? newName(type, stackName, owner.logicalId);
  if (find(account, type, id) !== undefined) throw new ServiceError(`${type} ${id} already exists`);
  const made: Made = { type, id, properties: named(type, id, properties), owner };
  account.resources.push(made);
  if (type === "AWS::S3::Bucket") account.objects.set(id, new Map());
  if (type === "Custom::CDKBucketDeployment") {
    account.objects.get(String(properties.DestinationBucketName))?.set("index.html", Buffer.from("page"));
  }
  return made;
}

export function change(made: Made, properties: Fields): void {
  made.properties = named(made.type, made.id, properties);
}

/** Adds the name that AWS has generated for the resource to the resource's settings, as if the template contained this name. */
function named(type: string, id: string, properties: Fields): Fields {
  const { primaryIdentifier, properties: known } = specOf(type);
  const [name, ...more] = primaryIdentifier;
  return name !== undefined && more.length === 0 && name in known ? { [name]: id, ...properties } : properties;
}

export function remove(account: Account, made: Made): void {
  const { DeletionProtectionEnabled, DeletionProtection } = made.properties;
  if (DeletionProtectionEnabled === true || DeletionProtection === "ACTIVE") {
    throw new ServiceError("Resource cannot be deleted as it is currently protected against deletion.");
  }
  const objects = made.type === "AWS::S3::Bucket" ? account.objects.get(made.id) : undefined;
  if (objects !== undefined && objects.size > 0) throw new ServiceError("The bucket you tried to delete is not empty");
  account.resources.splice(account.resources.indexOf(made), 1);
  if (made.type === "AWS::S3::Bucket") account.objects.delete(made.id);
}
