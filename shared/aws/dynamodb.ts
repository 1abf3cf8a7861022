/** The DynamoDB client. It converts DynamoDB's types to JavaScript values: sets to `Set`, and binary values to `Uint8Array`. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/**
 * Returns a client. It omits undefined fields when it writes, and throws when it reads a number that JavaScript cannot represent exactly.
 */
export function dynamoClient(settings: ClientSettings = {}): DynamoDBDocumentClient {
  const client = new DynamoDBClient(clientConfig(settings));
  // The SDK's logger middleware copies each request and response even if no logger is set, so it is removed.
  client.middlewareStack.remove("loggerMiddleware");
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
