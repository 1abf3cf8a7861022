/** Tests `npm run dead-letters`. After a fault has been repaired, an operator uses this command to repeat the failed work. */
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { expect, onTestFinished, test } from "vitest";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { messageFor } from "#shared/webhooks/messages.ts";
import type { Webhook } from "../../../docs/client/api.ts";
import { sqsAt, streamsAt } from "../../../infra/local/servers/clients.ts";
import { lambdaRecord } from "../../../infra/local/sources/stream-record.ts";
import { baseUrl } from "../../harness/client.ts";
import { tableAt } from "../../harness/faulty-dynamodb.ts";
import { outputsOf } from "../../harness/local-outputs.ts";
import { type Receiver, startReceiver } from "../../harness/receiver.ts";
import { dataOf, present, uniqueName } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { runOnService } from "./command-process.ts";
import { recordInStream } from "./table-stream.ts";

const outputs = await outputsOf(baseUrl());
const table = tableAt(outputs.DynamoDbEndpoint, outputs.TableName);
const streams = streamsAt(outputs.DynamoDbEndpoint);
const sqs = sqsAt(outputs.SqsEndpoint);
const as = await newTeam();

const deadLetters = (...args: readonly string[]) => runOnService("dead-letters.ts", ...args);

async function listen(delayMinutes: number): Promise<{ receiver: Receiver; webhook: Webhook }> {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const registrations = [{ event: "prospect.created", delayMinutes }];
  const body = { name: uniqueName(), url: receiver.url, registrations };
  return { receiver, webhook: dataOf(await as.admin.POST("/api/webhooks", { body }), 201) };
}

const inStream = (id: number) =>
  recordInStream(
    streams,
    outputs.TableName,
    ({ dynamodb: { NewImage: row } = {} }) => row?.type?.S === "prospect" && row.id?.N === String(id),
  );

const send = (QueueUrl: string, body: object) =>
  sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(body), MessageGroupId: "1" }));

test("failed stream records become events, whether a message holds the record or its position; an unreadable one stays", async () => {
  const { id } = dataOf(await as.rep.POST("/api/prospects", { body: { name: "Ada" } }), 201);
  const { position, record } = await inStream(id);
  // This webhook is created after the failure. It can receive the event only if the command has repeated the work.
  const first = await listen(0);
  await send(outputs.ParkedRecordsUrl, { v: 1, reason: "Error", record: lambdaRecord(record) });
  await send(outputs.ParkedRecordsUrl, { neither: "record", nor: "positions" });
  const one = await deadLetters("redrive", "parked-records");
  expect(one, one.stderr).toMatchObject({ code: 1 });
  // The repeated work also writes log lines, which must not appear on stdout.
  expect(one.stdout).toMatch(/^parked-records on \S+: 1 done again, 1 failed\n$/);
  await first.receiver.until(1);
  const second = await listen(0);
  const between = { ...position, batchSize: 1 };
  await send(outputs.ParkedRecordsUrl, { version: "1.0", DDBStreamBatchInfo: between });
  const two = await deadLetters("redrive", "parked-records");
  expect(two, two.stderr).toMatchObject({ code: 0 });
  await second.receiver.until(1);
  for (const { receiver } of [first, second]) {
    expect(receiver.receipts.map(({ event }) => event)).toMatchObject([
      { event: "prospect.created", data: { prospect: { id, name: "Ada" } } },
    ]);
  }
});

test("the command ends if a message names a position that the stream has not reached", async () => {
  const { id } = dataOf(await as.rep.POST("/api/prospects", { body: { name: "Cid" } }), 201);
  const { position } = await inStream(id);
  const between = { ...position, endSequenceNumber: `${position.endSequenceNumber}0000`, batchSize: 1 };
  await send(outputs.ParkedRecordsUrl, { version: "1.0", DDBStreamBatchInfo: between });
  const ended = await deadLetters("redrive", "parked-records");
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain(`has no record at the position ${between.endSequenceNumber}`);
});

test("a delivery whose message failed is sent exactly once", async () => {
  // Empties the dead-letter queue, because other tests of the same service may have left messages in it.
  await deadLetters("redrive", "deliveries");
  const { receiver, webhook } = await listen(60);
  dataOf(await as.rep.POST("/api/prospects", { body: { name: "Bob" } }), 201);
  const path = { params: { path: { id: webhook.id } } };
  const listed = async () => dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries", path)).items[0];
  await expect.poll(listed).toBeDefined();
  const deliveryId = present(await listed()).id;
  const { companyId } = webhook;
  const key = keys.delivery(companyId, webhook.id, deliveryId);
  // Without `dueShard`, the sweeper does not find the delivery, so it is sent only because of the message in the dead-letter queue.
  await table.write({ update: key, change: { set: { dueAt: iso(Date.now()) }, remove: ["dueShard"] } });
  const delivery = StoredDelivery.parse(await table.get(key));
  await send(outputs.DeliveriesDeadLettersUrl, messageFor(delivery));
  await send(outputs.DeliveriesDeadLettersUrl, messageFor(delivery));
  const before = await deadLetters("list");
  expect(before.stdout).toMatch(/^deliveries +2$/m);
  const { code, stdout, stderr } = await deadLetters("redrive", "deliveries");
  expect({ code, stderr }).toEqual({ code: 0, stderr: `target: local service at ${baseUrl()}\n` });
  expect(stdout).toMatch(/2 done again, 0 failed/);
  await receiver.until(1);
  const state = async () => dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries", path)).items[0]?.status;
  await expect.poll(state).toBe("delivered");
  expect((await deadLetters("list")).stdout).toMatch(/^deliveries +0$/m);
  expect(receiver.receipts).toHaveLength(1);
});

test("an unknown queue gets the usage with all queues", async () => {
  const { code, stderr } = await deadLetters("redrive", "everything");
  expect(code).toBe(2);
  expect(stderr).toMatch(/deliveries, imports, exports, bulk-jobs, parked-records, unflushed-indexes/);
});
