/**
 * The DynamoDB client. It converts between DynamoDB's types and plain JavaScript values, with `Set` for sets and `Uint8Array` for binary
 * values.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** Makes the client. It omits fields that are undefined, and throws for a number that JavaScript cannot represent exactly. */
export function dynamoClient(settings: ClientSettings = {}): DynamoDBDocumentClient {
  const client = new DynamoDBClient(clientConfig(settings));
  // The SDK's logger middleware copies each request and each answer, even if no logger is set.
  client.middlewareStack.remove("loggerMiddleware");
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
