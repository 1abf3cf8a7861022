/** Makes the context of the functions that publish and deliver webhook events, and queues poison records for operators. */
import { setTimeout } from "node:timers/promises";
import type { DynamoDBRecord } from "aws-lambda";
import { deliveryQueue, sendText } from "#shared/aws/sqs.ts";
import { systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { EventContext } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { oncePerInstance } from "#shared/instance.ts";
import { post } from "#shared/outbound/post.ts";
import { secretsOn } from "#shared/secrets/secrets.ts";

export const eventContext = /* @__PURE__ */ oncePerInstance((): EventContext => {
  const table = openTable(setting("TABLE_NAME"));
  return {
    table,
    secrets: secretsOn(table),
    clock: systemClock,
    // Do not `unref` the timer: if nothing else keeps the event loop alive, Lambda would end the call during the wait.
    wait: (ms) => setTimeout(ms),
    queue: deliveryQueue(),
    timeScale: setting("TIME_SCALE"),
    get senders() {
      // A getter, because only the deliverer has this setting. In other functions, reading it while the context is made would fail.
      return setting("DELIVERY_SENDERS");
    },
    post: (request) => post(request, setting("WEBHOOK_URL_POLICY")),
    savePoisonRecord: (record, reason) => enqueuePoisonRecord(setting("POISON_RECORDS_URL"), record, reason),
  };
});

/** Maximum bytes of a message body with the complete stream record. It is a little below the limit of SQS, 1 MiB. */
const RECORD_BYTES = 1_000_000;

/** Sends a poison record to the queue for operators, without its old image if it would be too large. */
async function enqueuePoisonRecord(queueUrl: string, record: DynamoDBRecord, reason: string): Promise<void> {
  const whole = JSON.stringify({ v: 1, reason, record });
  const { OldImage: _, ...newest } = record.dynamodb ?? {};
  const fits = Buffer.byteLength(whole) <= RECORD_BYTES;
  const body = fits ? whole : JSON.stringify({ v: 1, reason, record: { ...record, dynamodb: newest } });
  await sendText(queueUrl, body);
}
