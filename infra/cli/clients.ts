/** Creates the AWS SDK clients that only operators' commands use. */
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

export const cloudFormationClient = (settings: ClientSettings): CloudFormationClient =>
  new CloudFormationClient(clientConfig(settings));
export const lambdaClient = (settings: ClientSettings): LambdaClient => new LambdaClient(clientConfig(settings));
export const streamsClient = (settings: ClientSettings): DynamoDBStreamsClient =>
  new DynamoDBStreamsClient(clientConfig(settings));
