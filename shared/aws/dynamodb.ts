/** The DynamoDB client. It converts between DynamoDB's types and JavaScript values: `Set` for sets and `Uint8Array` for binary values. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** The client omits undefined fields, and throws for a number that JavaScript cannot represent exactly. */
export function dynamoClient(settings: ClientSettings = {}): DynamoDBDocumentClient {
  const client = new DynamoDBClient(clientConfig(settings));
  // The SDK's logger middleware copies each request and answer, even without a logger.
  client.middlewareStack.remove("loggerMiddleware");
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
