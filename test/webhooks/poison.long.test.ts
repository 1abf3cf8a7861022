/**
 * Tests that unreadable queue messages arrive unchanged in the dead-letter queue, and that readable messages in the same batches are
 * processed once.
 */
import { ReceiveMessageCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { expect, test } from "vitest";
import { sqsClient } from "#shared/aws/sqs.ts";
import { baseUrl } from "../harness/client.ts";
import { LOCAL } from "../harness/faulty-dynamodb.ts";
import { outputsOf } from "../harness/local-outputs.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "./subscribed.ts";

const outputs = await outputsOf(baseUrl());
const sqs = sqsClient({ ...LOCAL, endpoint: outputs.SqsEndpoint });
const as = await newTeam();

async function dead(): Promise<string[]> {
  const asked = { QueueUrl: outputs.DeliveriesDeadLettersUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 0 };
  const { Messages = [] } = await sqs.send(new ReceiveMessageCommand(asked));
  return Messages.map(({ Body = "" }) => Body);
}

test("five events arrive once among messages that are no JSON, have another version, have 256 KB or name no company", async () => {
  const { receiver, webhook } = await subscribe(as.admin, [{ event: "prospect.created" }]);
  const place = { companyId: webhook.companyId, webhookId: webhook.id };
  const deliveryId = `dlv_${"0".repeat(29)}`;
  const poison = [
    "{no JSON",
    JSON.stringify({ v: 2, ...place, deliveryId, attempt: 1 }),
    JSON.stringify({ v: 1, ...place, deliveryId, attempt: 1, filler: "x".repeat(250_000), companyId: "none" }),
    JSON.stringify({ v: 1, webhookId: webhook.id, deliveryId, attempt: 1 }),
  ];
  for (const MessageBody of poison) {
    const message = { QueueUrl: outputs.DeliveriesUrl, MessageBody, MessageGroupId: String(webhook.companyId) };
    await sqs.send(new SendMessageCommand(message));
  }
  const names = Array.from({ length: 5 }, (_, i) => `good ${i}`);
  await Promise.all(names.map((name) => as.rep.POST("/api/prospects", { body: { name } })));
  await receiver.until(5);
  await expect.poll(async () => (await dead()).length, { interval: 500 }).toBe(poison.length);
  const found = await dead();
  expect(found.toSorted()).toEqual(poison.toSorted());
  const received = receiver.receipts.map(({ event }) => event.id);
  expect(received).toHaveLength(5);
  expect(new Set(received).size).toBe(5);
});
