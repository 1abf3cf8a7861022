/** Names the IAM actions that a request to AWS needs, as the service authorization reference defines them. */
import * as z from "zod/mini";

const prefixes: Readonly<Record<string, string>> = {
  DynamoDB_20120810: "dynamodb",
  DynamoDBStreams_20120810: "dynamodb",
  AmazonSQS: "sqs",
  AmazonSSM: "ssm",
  AWSCognitoIdentityProviderService: "cognito-idp",
  TrentService: "kms",
};

/** The DynamoDB action for each kind of operation in a transaction. A transaction needs the actions of all its operations. */
const transactional: Readonly<Record<string, string>> = {
  Put: "PutItem",
  Update: "UpdateItem",
  Delete: "DeleteItem",
  ConditionCheck: "ConditionCheckItem",
  Get: "GetItem",
};
const Transaction = z.object({ TransactItems: z.array(z.record(z.string(), z.unknown())) });
const Statements = z.object({ Statements: z.array(z.object({ Statement: z.string() })) });

export interface SentRequest {
  readonly service: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** Returns the AWS service that a signature (`Credential=KEY/DATE/REGION/SERVICE/aws4_request`) names, or `unsigned`. */
export function serviceOf({ authorization }: SentRequest["headers"]): string {
  const [, service = "unsigned"] =
    /Credential=[^/]+\/\d+\/[^/]+\/([\w-]+)\/aws4_request/.exec(String(authorization)) ?? [];
  return service;
}

/** Returns the IAM actions that the request needs. Throws an error for a request that this function does not know. */
export function iamActions({ service, method, url, headers, body }: SentRequest): string[] {
  const target = headers["x-amz-target"];
  if (typeof target === "string") return jsonActions(target, body);
  if (service === "cloudformation") return [`cloudformation:${new URLSearchParams(body).get("Action")}`];
  if (service === "lambda") return lambdaActions(method, url);
  if (service === "s3") return s3Actions(method, new URL(url, "http://bucket"), headers);
  throw new Error(`no action is known for ${service} ${method} ${url}`);
}

function jsonActions(target: string, body: string): string[] {
  const [api = "", operation = ""] = target.split(".");
  const prefix = prefixes[api];
  if (prefix === undefined) throw new Error(`no action is known for ${target}`);
  if (operation.startsWith("Transact")) {
    const { TransactItems } = z.parse(Transaction, JSON.parse(body));
    return TransactItems.flatMap((item) => Object.keys(item)).map((kind) => `${prefix}:${transactional[kind]}`);
  }
  if (operation === "BatchExecuteStatement") {
    const { Statements: statements } = z.parse(Statements, JSON.parse(body));
    return statements.map(({ Statement }) => {
      if (!Statement.startsWith("INSERT ")) throw new Error(`no action is known for ${Statement}`);
      return `${prefix}:PartiQLInsert`;
    });
  }
  return [`${prefix}:${operation}`];
}

function lambdaActions(method: string, url: string): string[] {
  const [, id] = /\/event-source-mappings\/?([^/?]*)/.exec(url) ?? [];
  if (id === undefined) throw new Error(`no action is known for Lambda: ${method} ${url}`);
  if (method === "PUT") return ["lambda:UpdateEventSourceMapping"];
  return [id === "" ? "lambda:ListEventSourceMappings" : "lambda:GetEventSourceMapping"];
}

function s3Actions(method: string, { pathname, searchParams }: URL, headers: SentRequest["headers"]): string[] {
  const isBucket = pathname.split("/").filter(Boolean).length < 2;
  if (method === "GET" && isBucket) return ["s3:ListBucket"];
  if (method === "POST" && searchParams.has("delete")) return ["s3:DeleteObject"];
  if (method === "GET" || method === "HEAD") return ["s3:GetObject"];
  if (method === "PUT")
    return [...(headers["x-amz-copy-source"] === undefined ? [] : ["s3:GetObject"]), "s3:PutObject"];
  throw new Error(`no action is known for S3: ${method} ${pathname}`);
}
