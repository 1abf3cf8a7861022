/** The resources of a simulated AWS account in one region. */
import { randomBytes, randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Fields } from "../../infra/template.ts";
import { specOf } from "./spec.ts";

export const ACCOUNT = "123456789012";
export const REGION = "eu-west-1";
const PARTITION = "aws";

export interface Made {
  readonly type: string;
  /** The id or name of the resource. CloudFormation calls it the physical id. */
  readonly id: string;
  /** The current settings of the resource. */
  properties: Fields;
  /** The stack that manages the resource, and the resource's logical id in this stack. Undefined if no stack manages it. */
  owner: { readonly stackId: string; readonly logicalId: string } | undefined;
}

export interface Account {
  readonly resources: Made[];
  /** For each bucket, its objects by key. */
  readonly objects: Map<string, Map<string, Buffer>>;
  readonly parameters: ReadonlyMap<string, string>;
  /** Logical ids of resources whose creation is to fail. Tests add them. */
  readonly failing: Set<string>;
}

/** Returns an account with the resources that `cdk bootstrap` creates. */
export function bootstrappedAccount(): Account {
  const role = (name: string): Made => ({
    type: "AWS::IAM::Role",
    id: `cdk-hnb659fds-${name}-role-${ACCOUNT}-${REGION}`,
    properties: {},
    owner: { stackId: "CDKToolkit", logicalId: name },
  });
  return {
    resources: ["deploy", "cfn-exec", "file-publishing", "image-publishing", "lookup"].map(role),
    objects: new Map([[`cdk-hnb659fds-assets-${ACCOUNT}-${REGION}`, new Map()]]),
    parameters: new Map([["/cdk-bootstrap/hnb659fds/version", "30"]]),
    failing: new Set(),
  };
}

const random = (length: number): string =>
  randomBytes(length).toString("base64url").replace(/[-_]/g, "x").slice(0, length);

/**
 * Number of function versions so far, in all functions together. AWS numbers the versions of each function from 1. In the simulation, the
 * versions of all functions have different numbers.
 */
let versions = 0;

/** For each resource type whose id a template cannot set, a function that returns an id as AWS generates it. */
const chosenIds: Readonly<Record<string, () => string>> = {
  "AWS::ApiGateway::Deployment": () => random(6).toLowerCase(),
  "AWS::ApiGateway::RestApi": () => random(10).toLowerCase(),
  "AWS::Cognito::UserPool": () => `${REGION}_${random(9)}`,
  "AWS::Cognito::UserPoolClient": () => random(26).toLowerCase(),
  "AWS::KMS::Key": () => randomUUID(),
  "AWS::Lambda::EventSourceMapping": () => randomUUID(),
  "AWS::Lambda::Version": () => String(++versions),
};

/** Returns the name that the template gives to the resource, or undefined if it gives none. */
export function givenName(type: string, properties: Fields): string | undefined {
  const parts = specOf(type).primaryIdentifier.map((name) => properties[name]);
  return parts.length > 0 && parts.every((part) => typeof part === "string")
    ? parts.join("|")
    : ownName(type, properties);
}

/**
 * Returns a name that must be unique, for types whose main identifier is not a name in the template. AWS identifies a topic by its ARN, for
 * example. Returns undefined for other types, and for resources without a name.
 */
function ownName(type: string, { QueueName, TopicName, StageName, RestApiId }: Fields): string | undefined {
  if (type === "AWS::SQS::Queue" && typeof QueueName === "string") return QueueName;
  if (type === "AWS::SNS::Topic" && typeof TopicName === "string") return TopicName;
  if (type === "AWS::ApiGateway::Stage") return `${String(RestApiId)}|${String(StageName)}`;
  return undefined;
}

export function newName(type: string, stackName: string, logicalId: string): string {
  const chosen = chosenIds[type];
  if (chosen !== undefined) return chosen();
  const name = `${`${stackName}-${logicalId}`.slice(0, 50)}-${random(12)}`;
  return type === "AWS::S3::Bucket" ? name.toLowerCase() : name;
}

export class ServiceError extends Error {}

export function find(account: Account, type: string, id: string): Made | undefined {
  return account.resources.find((made) => made.type === type && made.id === id);
}

const arn = (service: string, resource: string): string =>
  `arn:${PARTITION}:${service}:${REGION}:${ACCOUNT}:${resource}`;

/** The values of `Ref`, for resource types whose `Ref` is not the resource's id. */
const references: Readonly<Record<string, (made: Made) => string>> = {
  "AWS::SQS::Queue": ({ id }) => `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/${id}`,
  "AWS::SNS::Topic": ({ id }) => arn("sns", id),
  "AWS::ApiGateway::Stage": ({ properties }) => String(properties.StageName),
  "AWS::Lambda::Alias": ({ properties }) => arn("lambda", `function:${properties.FunctionName}:${properties.Name}`),
  "AWS::Lambda::Version": ({ id, properties }) => arn("lambda", `function:${properties.FunctionName}:${id}`),
};

export const referenceTo = (made: Made): string => references[made.type]?.(made) ?? made.id;

const attributes: Readonly<Record<string, (made: Made) => string>> = {
  "AWS::DynamoDB::Table.StreamArn": ({ id }) => arn("dynamodb", `table/${id}/stream/2026-01-01T00:00:00.000`),
  "AWS::Cognito::UserPool.ProviderName": ({ id }) => `cognito-idp.${REGION}.amazonaws.com/${id}`,
  "AWS::Cognito::UserPool.ProviderURL": ({ id }) => `https://cognito-idp.${REGION}.amazonaws.com/${id}`,
  "AWS::Cognito::UserPool.Arn": ({ id }) => arn("cognito-idp", `userpool/${id}`),
  "AWS::KMS::Key.Arn": ({ id }) => arn("kms", `key/${id}`),
  "AWS::IAM::Role.Arn": ({ id }) => `arn:${PARTITION}:iam::${ACCOUNT}:role/${id}`,
  "AWS::Lambda::Version.Version": ({ id }) => id,
  "AWS::Lambda::Function.Arn": ({ id }) => arn("lambda", `function:${id}`),
  "AWS::Logs::LogGroup.Arn": ({ id }) => arn("logs", `log-group:${id}:*`),
  "AWS::S3::Bucket.Arn": ({ id }) => `arn:${PARTITION}:s3:::${id}`,
  "AWS::SQS::Queue.Arn": ({ id }) => arn("sqs", id),
  "AWS::SQS::Queue.QueueName": ({ id }) => id,
  "AWS::SNS::Topic.TopicName": ({ id }) => id,
};

/** Returns an attribute of a resource, as `Fn::GetAtt` does. */
export function attributeOf(made: Made, attribute: string): string {
  const known = attributes[`${made.type}.${attribute}`];
  if (known !== undefined) return known(made);
  const { arnTemplate } = specOf(made.type);
  if (!attribute.endsWith("Arn") || arnTemplate === undefined) return `${made.id}.${attribute}`;
  const given: Readonly<Record<string, string>> = { Partition: PARTITION, Region: REGION, Account: ACCOUNT };
  return arnTemplate.replace(
    /\$\{(\w+)\}/g,
    (_, name: string) => given[name] ?? String(made.properties[name] ?? made.id),
  );
}

export const nameOfArn = (value: unknown): string => String(value).split(/[:/]/).at(-1) ?? "";

/** Returns the names of the settings that differ between `before` and `after`. */
export const differences = (before: Fields, after: Fields): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !isDeepStrictEqual(before[name], after[name]),
  );
