/** Returns the names, ARNs and URLs of local resources. `Ref` and `Fn::GetAtt` resolve to these values. */
import { ACCOUNT, REGION } from "../servers/address.ts";
import type { TemplateResource } from "./resources.ts";

/**
 * Returns the name of a resource: its logical id. CloudFormation would add a random suffix. The name of a bucket is in lower case, as S3
 * requires.
 */
export const physicalName = (logicalId: string, { Type }: Pick<TemplateResource, "Type">): string =>
  Type === "AWS::S3::Bucket" ? logicalId.toLowerCase() : logicalId;

/** The number of a function's published version. The local service has only one version of each function. */
export const VERSION = "1";

export const arn = (service: string, resource: string): string => `arn:aws:${service}:${REGION}:${ACCOUNT}:${resource}`;
export const functionArn = (name: string): string => arn("lambda", `function:${name}`);
export const keyArn = (name: string): string => arn("kms", `key/${name}`);
export const queueArn = (name: string): string => arn("sqs", name);

/**
 * Returns the last part of an ARN, which is the resource's name. For the ARN of a function's alias, returns the function's name. Returns a
 * string without colons unchanged.
 */
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
  switch (`${resource.Type}.${name}`) {
    case "AWS::DynamoDB::Table.StreamArn":
      return arn("dynamodb", `table/${own}/stream/local`);
    case "AWS::SQS::Queue.Arn":
      return queueArn(own);
    case "AWS::SQS::Queue.QueueName":
      return own;
    case "AWS::KMS::Key.Arn":
      return keyArn(own);
    case "AWS::S3::Bucket.Arn":
      return `arn:aws:s3:::${own}`;
    case "AWS::Lambda::Version.Version":
      return VERSION;
    case "AWS::Lambda::Function.Arn":
      return functionArn(own);
    default:
      // Only resources that the local service ignores (roles, log groups, alarms) reach this case. Nothing uses their ARNs, so any ARN is
      // sufficient.
      return name === "Arn" ? arn("local", own) : undefined;
  }
}

/** Converts an IAM pattern, in which `*` matches any text, to a regular expression. */
export const patternOf = (pattern: string): RegExp =>
  new RegExp(`^${pattern.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`);
