/** Creates the AWS SDK clients with which the local service calls its own servers. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import type { S3Client } from "@aws-sdk/client-s3";
import type { SQSClient } from "@aws-sdk/client-sqs";
import type { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { clientConfig } from "#shared/aws/client-config.ts";
import { dynamoClient, rawDynamoClient } from "#shared/aws/dynamodb.ts";
import { s3Client } from "#shared/aws/s3.ts";
import { sqsClient } from "#shared/aws/sqs.ts";
import { REGION } from "./address.ts";

/** Milliseconds to wait for an answer. A poll of a queue takes up to 20 s, and bulk writes can take long on a busy machine. */
const ANSWER_MS = 30_000;

/** The local servers require a signature but do not verify it, so they accept any credentials. */
const settingsFor = (endpoint: string) => ({
  endpoint,
  region: REGION,
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
  answerMs: ANSWER_MS,
});

export const dynamoDbAt = (endpoint: string, attempts = 3): DynamoDBClient =>
  rawDynamoClient({ ...settingsFor(endpoint), attempts });
export const documentsAt = (endpoint: string): DynamoDBDocumentClient => dynamoClient(settingsFor(endpoint));
export const streamsAt = (endpoint: string): DynamoDBStreamsClient =>
  new DynamoDBStreamsClient(clientConfig(settingsFor(endpoint)));
export const sqsAt = (endpoint: string): SQSClient => sqsClient(settingsFor(endpoint));
export const s3At = (endpoint: string): S3Client => s3Client(settingsFor(endpoint));
