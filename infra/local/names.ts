/** Returns the names, ARNs and URLs of local resources. `Ref` and `Fn::GetAtt` resolve to these values. */
import * as z from "zod/mini";
import type { TemplateResource } from "./resources.ts";

export const REGION = "us-east-1";
/** The AWS account id in the ARNs and queue URLs of the local servers. */
export const ACCOUNT = "000000000000";

const nameProperty: Record<string, string> = {
  "AWS::DynamoDB::Table": "TableName",
  "AWS::DynamoDB::GlobalTable": "TableName",
  "AWS::SQS::Queue": "QueueName",
  "AWS::S3::Bucket": "BucketName",
  "AWS::Lambda::Function": "FunctionName",
  "AWS::ApiGateway::Stage": "StageName",
};

/**
 * Returns the name that the template gives to the resource, or the logical id if the template gives no name. CloudFormation would add a
 * random suffix to the logical id. The name of a bucket is in lower case, as S3 requires.
 */
export function physicalName(logicalId: string, resource: TemplateResource): string {
  const property = nameProperty[resource.Type];
  const given = z.safeParse(z.string(), property === undefined ? undefined : resource.Properties[property]);
  const name = given.success ? given.data : logicalId;
  return resource.Type === "AWS::S3::Bucket" ? name.toLowerCase() : name;
}

/** The number of a function's published version. The local service has only one version of each function. */
export const VERSION = "1";

export const arn = (service: string, resource: string): string => `arn:aws:${service}:${REGION}:${ACCOUNT}:${resource}`;
export const functionArn = (name: string): string => arn("lambda", `function:${name}`);
export const keyArn = (name: string): string => arn("kms", `key/${name}`);
export const queueArn = (name: string): string => arn("sqs", name);
const tableArn = (name: string): string => arn("dynamodb", `table/${name}`);
export const streamArn = (tableName: string): string => `${tableArn(tableName)}/stream/local`;

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
export function attribute(
  logicalId: string,
  resource: TemplateResource,
  name: string,
  sqsEndpoint: string,
): string | undefined {
  const own = physicalName(logicalId, resource);
  switch (`${resource.Type}.${name}`) {
    case "AWS::DynamoDB::Table.Arn":
    case "AWS::DynamoDB::GlobalTable.Arn":
      return tableArn(own);
    case "AWS::DynamoDB::Table.StreamArn":
    case "AWS::DynamoDB::GlobalTable.StreamArn":
      return streamArn(own);
    case "AWS::SQS::Queue.Arn":
      return queueArn(own);
    case "AWS::SQS::Queue.QueueName":
      return own;
    case "AWS::SQS::Queue.QueueUrl":
      return queueUrl(sqsEndpoint, own);
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
