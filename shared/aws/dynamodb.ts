/** The DynamoDB client: plain JavaScript values in and out, sets as `Set`, binary as `Uint8Array`. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** Items omit fields that are undefined. A number that JavaScript cannot hold exactly is an error. */
export function dynamoClient(settings: ClientSettings = {}): DynamoDBDocumentClient {
  const client = new DynamoDBClient(clientConfig(settings));
  // The SDK copies each request and each answer for its logger, even if the logger does nothing.
  client.middlewareStack.remove("loggerMiddleware");
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
