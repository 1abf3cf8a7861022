/** The DynamoDB client: plain JavaScript values in and out, sets as `Set`, binary as `Uint8Array`. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** Fields that are undefined are left out of an item. A number that JavaScript does not hold exactly is an error. */
export const dynamoClient = (settings: ClientSettings = {}): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(new DynamoDBClient(clientConfig(settings)), {
    marshallOptions: { removeUndefinedValues: true },
  });
