/** The DynamoDB clients. Most code uses `dynamoClient`, which converts sets to `Set`, and binary values to `Uint8Array`. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** Returns the client for commands that manage tables, and for items with DynamoDB's own types. */
export const rawDynamoClient = (settings: ClientSettings = {}): DynamoDBClient =>
  new DynamoDBClient(clientConfig(settings));

/** Omits undefined fields, and throws for a number that JavaScript cannot represent exactly. */
export const dynamoClient = (settings: ClientSettings = {}): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(rawDynamoClient(settings), { marshallOptions: { removeUndefinedValues: true } });
