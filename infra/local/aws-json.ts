/** Calls a local server in the JSON protocol of DynamoDB and SQS: what the template says goes over the wire unchanged. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { json } from "node:stream/consumers";
import * as z from "zod/mini";

export class AwsError extends Error {
  readonly code: string;

  constructor(target: string, code: string, message: string) {
    super(`${target}: ${code}: ${message}`);
    this.name = "AwsError";
    this.code = code;
  }
}

export type AwsCall = (operation: string, body: object, signal?: AbortSignal) => Promise<unknown>;

const Failure = z.object({
  __type: z._default(z.string(), "Unknown"),
  message: z.optional(z.string()),
  Message: z.optional(z.string()),
});

/** Local servers want a signature to be there and do not check it. */
const signature = (service: string): string =>
  `AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=0`;

function caller(endpoint: string, service: string, targetPrefix: string): AwsCall {
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amz-date": "20260101T000000Z",
    authorization: signature(service),
  };
  return async (operation, body, signal) => {
    const target = `${targetPrefix}.${operation}`;
    const response = await post(endpoint, { ...headers, "x-amz-target": target }, JSON.stringify(body), signal);
    const answer = await json(response);
    const { statusCode: status = 0 } = response;
    if (status < 300) return answer;
    const failure = z.safeParse(Failure, answer);
    const code = failure.success ? (failure.data.__type.split("#").at(-1) ?? "Unknown") : `Status${status}`;
    throw new AwsError(
      target,
      code,
      (failure.success && (failure.data.message ?? failure.data.Message)) || "no message",
    );
  };
}

/** Not `fetch`, which costs four times as much: streams are read some fifty times a second. */
export function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const request = url.startsWith("https:") ? httpsRequest : httpRequest;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(url, { method: "POST", headers, ...(signal !== undefined && { signal }) }, resolve)
    .on("error", reject)
    .end(body);
  return promise;
}

export const dynamoDbAt = (endpoint: string): AwsCall => caller(endpoint, "dynamodb", "DynamoDB_20120810");
export const streamsAt = (endpoint: string): AwsCall => caller(endpoint, "dynamodb", "DynamoDBStreams_20120810");
export const sqsAt = (endpoint: string): AwsCall => caller(endpoint, "sqs", "AmazonSQS");
