/** Returns the names, ARNs and URLs of local resources. `Ref` and `Fn::GetAtt` resolve to these values. */
import { ACCOUNT, REGION } from "../servers/address.ts";
import type { TemplateResource } from "./resources.ts";

/** Returns the name of a resource: its logical id, to which CloudFormation would add a random suffix. S3 requires names in lower case. */
export const physicalName = (logicalId: string, { Type }: Pick<TemplateResource, "Type">): string =>
  Type === "AWS::S3::Bucket" ? logicalId.toLowerCase() : logicalId;

/** The number of a function's published version. The local service has only one version of each function. */
export const VERSION = "1";

export const arn = (service: string, resource: string): string => `arn:aws:${service}:${REGION}:${ACCOUNT}:${resource}`;
export const functionArn = (name: string): string => arn("lambda", `function:${name}`);
export const keyArn = (name: string): string => arn("kms", `key/${name}`);
export const queueArn = (name: string): string => arn("sqs", name);

/** Returns the last part of an ARN, or the function's name in the ARN of its alias. Returns a string without colons unchanged. */
export function nameOfArn(value: string): string {
  const parts = value.split(":");
  return (parts[2] === "lambda" && parts[5] === "function" ? parts[6] : parts.at(-1)) ?? value;
}

export const queueUrl = (endpoint: string, name: string): string => `${endpoint}/${ACCOUNT}/${name}`;

export function reference(logicalId: string, resource: TemplateResource, sqsEndpoint: string): string {
  const name = physicalName(logicalId, resource);
  return resource.Type === "AWS::SQS::Queue" ? queueUrl(sqsEndpoint, name) : name;
}

/** Returns the value of `Fn::GetAtt` for an attribute. Returns undefined if the attribute is unknown. */
export function attribute(logicalId: string, resource: TemplateResource, name: string): string | undefined {
  const own = physicalName(logicalId, resource);
  const known: Readonly<Record<string, string>> = {
    "AWS::DynamoDB::Table.StreamArn": arn("dynamodb", `table/${own}/stream/local`),
    "AWS::SQS::Queue.Arn": queueArn(own),
    "AWS::KMS::Key.Arn": keyArn(own),
    "AWS::S3::Bucket.Arn": `arn:aws:s3:::${own}`,
    "AWS::Lambda::Version.Version": VERSION,
    "AWS::Lambda::Function.Arn": functionArn(own),
  };
  // Nothing uses the ARNs of resources that the local service ignores (roles, log groups, alarms), so any ARN is sufficient.
  return known[`${resource.Type}.${name}`] ?? (name === "Arn" ? arn("local", own) : undefined);
}

/** Converts an IAM pattern, in which `*` matches any text, to a regular expression. */
export const patternOf = (pattern: string): RegExp =>
  new RegExp(`^${pattern.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`);
