/** Where stream records go that no try can publish: whole, so that they can be published once the fault is mended. */
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import type { DynamoDBRecord } from "aws-lambda";
import { sqsClient } from "#shared/aws/sqs.ts";

/** The largest message that SQS takes, less room for what stands around the record. */
const RECORD_BYTES = 1_000_000;

/** A record too large for a message is parked without its old image: the new one tells what is to be published. */
export async function parkRecord(queueUrl: string, record: DynamoDBRecord, reason: string): Promise<void> {
  const whole = JSON.stringify({ v: 1, reason, record });
  const { OldImage: _, ...rest } = record.dynamodb ?? {};
  const fits = Buffer.byteLength(whole) <= RECORD_BYTES;
  const body = fits ? whole : JSON.stringify({ v: 1, reason, record: { ...record, dynamodb: rest } });
  await sqsClient().send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: body }));
}
