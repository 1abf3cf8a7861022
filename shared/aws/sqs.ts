/** The SQS client. */
import { SQSClient } from "@aws-sdk/client-sqs";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

export const sqsClient = (settings: ClientSettings = {}): SQSClient => new SQSClient(clientConfig(settings));
