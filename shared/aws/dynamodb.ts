/** The DynamoDB client. It converts DynamoDB's types to JavaScript values: sets to `Set`, and binary values to `Uint8Array`. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** Returns a client. It leaves out undefined fields, and throws for a number that JavaScript cannot represent exactly. */
export function dynamoClient(settings: ClientSettings = {}): DynamoDBDocumentClient {
  const client = new DynamoDBClient(clientConfig(settings));
  // The SDK's logger middleware is removed, because it copies each request and answer even without a logger.
  client.middlewareStack.remove("loggerMiddleware");
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
