/** Opens the context of the functions that publish and deliver events. Stores stream records that cannot be published. */
import { setTimeout } from "node:timers/promises";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import type { DynamoDBRecord } from "aws-lambda";
import { deliveryQueue, sqsClient } from "#shared/aws/sqs.ts";
import { systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { EventContext } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { post } from "#shared/outbound/post.ts";
import { secretsOn } from "#shared/secrets/secrets.ts";

let opened: EventContext | undefined;

export function eventContext(): EventContext {
  if (opened !== undefined) return opened;
  const table = openTable(setting("TABLE_NAME"));
  opened = {
    table,
    secrets: secretsOn(table),
    clock: systemClock,
    // Keep the timer referenced, because Lambda treats an empty event loop as finished.
    wait: (ms) => setTimeout(ms),
    queue: deliveryQueue(),
    timeScale: setting("TIME_SCALE"),
    get senders() {
      // Read this setting at its first use, because only the deliver function has it.
      return setting("DELIVERY_SENDERS");
    },
    post: (request) => post(request, setting("WEBHOOK_URL_POLICY")),
    park: (record, reason) => keepPoisonRecord(setting("PARKED_RECORDS_URL"), record, reason),
  };
  return opened;
}

/** The largest stream record in a message, in bytes. SQS accepts 1 MiB, and the rest is for the fields around the record. */
const RECORD_BYTES = 1_000_000;

/**
 * Sends a record that cannot be published to the queue of such poison records. A record that is too large is sent without its old image.
 */
async function keepPoisonRecord(queueUrl: string, record: DynamoDBRecord, reason: string): Promise<void> {
  const whole = JSON.stringify({ v: 1, reason, record });
  const { OldImage: _, ...newest } = record.dynamodb ?? {};
  const fits = Buffer.byteLength(whole) <= RECORD_BYTES;
  const body = fits ? whole : JSON.stringify({ v: 1, reason, record: { ...record, dynamodb: newest } });
  await sqsClient().send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: body }));
}
