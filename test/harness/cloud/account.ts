/** The resources of a simulated AWS account in one region. AWS's public schemas say how AWS names and replaces resources of each type. */
import { randomBytes, randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { loadAwsServiceSpecSync } from "@aws-cdk/aws-service-spec";
import type { Fields } from "../../infra/template.ts";

export const ACCOUNT = "123456789012";
export const REGION = "eu-west-1";

export interface Made {
  readonly type: string;
  /** The id or name of the resource. CloudFormation calls it the physical id. */
  readonly id: string;
  properties: Fields;
  /** The id of the stack that manages the resource. Undefined if no stack manages it. */
  stackId: string | undefined;
}

export interface Account {
  readonly resources: Made[];
  /** Logical ids of resources whose creation is to fail. Tests add them. */
  readonly failing: Set<string>;
}

const database = loadAwsServiceSpecSync();
/** Matches the type of a custom resource. A function of the template creates custom resources, so AWS has no schema of their settings. */
const CUSTOM = /^Custom::[\w@-]{1,60}$/;

interface Schema {
  readonly properties: Readonly<Record<string, { readonly causesReplacement?: string }>>;
  readonly primaryIdentifier: readonly string[];
  readonly arnTemplate: string | undefined;
}

/** Returns AWS's schema of a resource type. Throws if AWS has no such type. */
function schemaOf(type: string): Schema {
  if (CUSTOM.test(type)) return { properties: {}, primaryIdentifier: [], arnTemplate: undefined };
  const [schema] = database.lookup("resource", "cloudFormationType", "equals", type);
  if (schema === undefined) throw new Error(`Template format error: Unrecognized resource types: [${type}]`);
  const { properties, primaryIdentifier = [], arnTemplate } = schema;
  return { properties, primaryIdentifier, arnTemplate };
}

/** Returns those settings in `changed` whose change makes CloudFormation replace the resource. */
export function replacing(type: string, changed: readonly string[]): string[] {
  const { properties } = schemaOf(type);
  return changed.filter((name) => properties[name]?.causesReplacement === "yes");
}

const random = (length: number): string =>
  randomBytes(length).toString("base64url").replace(/[-_]/g, "x").slice(0, length);

/** Generates ids in AWS's format, for those resource types whose ids can be written into settings.json. */
const generatedIds: Readonly<Record<string, () => string>> = {
  "AWS::Cognito::UserPool": () => `${REGION}_${random(9)}`,
  "AWS::Cognito::UserPoolClient": () => random(26).toLowerCase(),
  "AWS::KMS::Key": () => randomUUID(),
};

/** Returns the name that the template gives to the resource, or undefined if it gives none. */
export function givenName(type: string, properties: Fields): string | undefined {
  const parts = schemaOf(type).primaryIdentifier.map((name) => properties[name]);
  if (parts.length > 0 && parts.every((part) => typeof part === "string")) return parts.join("|");
  // AWS identifies a queue by its URL and a topic by its ARN. But no two queues or topics may have the same name.
  const { QueueName, TopicName } = properties;
  const name = type === "AWS::SQS::Queue" ? QueueName : type === "AWS::SNS::Topic" ? TopicName : undefined;
  return typeof name === "string" ? name : undefined;
}

function newName(type: string, stackName: string, logicalId: string): string {
  const name = generatedIds[type]?.() ?? `${`${stackName}-${logicalId}`.slice(0, 50)}-${random(12)}`;
  return type === "AWS::S3::Bucket" ? name.toLowerCase() : name;
}

export function find(account: Account, type: string, id: string): Made | undefined {
  return account.resources.find((made) => made.type === type && made.id === id);
}

interface New extends Pick<Made, "type" | "properties"> {
  readonly stack: { readonly id: string; readonly name: string };
  readonly logicalId: string;
}

/** Creates a resource. Throws if its name is already in use. */
export function create(account: Account, { type, properties, stack, logicalId }: New): Made {
  if (account.failing.has(logicalId)) throw new Error("The service is unavailable");
  const id = givenName(type, properties) ?? newName(type, stack.name, logicalId);
  if (find(account, type, id) !== undefined) throw new Error(`${type} ${id} already exists`);
  const made: Made = { type, id, properties: named(type, id, properties), stackId: stack.id };
  account.resources.push(made);
  return made;
}

export function change(made: Made, properties: Fields): void {
  made.properties = named(made.type, made.id, properties);
}

/** Adds the name that AWS has generated for the resource to the resource's settings, as if the template contained this name. */
function named(type: string, id: string, properties: Fields): Fields {
  const { primaryIdentifier, properties: known } = schemaOf(type);
  const [name, ...more] = primaryIdentifier;
  return name !== undefined && more.length === 0 && name in known ? { [name]: id, ...properties } : properties;
}

export function remove(account: Account, made: Made): void {
  const { DeletionProtectionEnabled, DeletionProtection } = made.properties;
  if (DeletionProtectionEnabled === true || DeletionProtection === "ACTIVE") {
    throw new Error("Resource cannot be deleted as it is currently protected against deletion.");
  }
  account.resources.splice(account.resources.indexOf(made), 1);
}

/** Returns the value of `Ref` for the resource. */
export function referenceTo({ type, id, properties: { FunctionName, Name } }: Made): string {
  return type === "AWS::Lambda::Alias" ? `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${FunctionName}:${Name}` : id;
}

/** Returns the value of `Fn::GetAtt` for the resource: its ARN, or a text that contains the name of the attribute. */
export function attributeOf({ type, id, properties }: Made, attribute: string): string {
  const { arnTemplate } = schemaOf(type);
  if (attribute !== "Arn" || arnTemplate === undefined) return `${id}.${attribute}`;
  const given: Fields = { Partition: "aws", Region: REGION, Account: ACCOUNT, ...properties };
  return arnTemplate.replace(/\$\{(\w+)\}/g, (_, name: string) => String(given[name] ?? id));
}

export const differences = (before: Fields, after: Fields): string[] =>
  Object.keys({ ...before, ...after }).filter((name) => !isDeepStrictEqual(before[name], after[name]));
