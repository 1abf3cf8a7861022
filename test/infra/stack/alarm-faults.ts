/** Faults of a local service that turn alarms on: messages in its queues, changes that cannot be published, and unreadable activity data. */
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { expect } from "vitest";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Table } from "#shared/db/table.ts";
import type { apiClient } from "../../../docs/client/client.ts";
import { sqsAt } from "../../../infra/local/servers/clients.ts";
import type { LocalService } from "../../../infra/local/service.ts";
import { dataOf } from "../../harness/shapes.ts";
import type { Observed } from "./cloudwatch.ts";

export async function depths(service: LocalService): Promise<Observed["queues"]> {
  const found = Object.entries(await service.queues());
  return Object.fromEntries(found.map(([id, { waiting }]) => [id, { visible: waiting, oldestSeconds: 0 }]));
}

export async function sendToDeliver({ outputs }: LocalService, MessageBody: string): Promise<void> {
  const { SqsEndpoint, DeliveryQueueUrl: QueueUrl } = outputs;
  await sqsAt(SqsEndpoint).send(new SendMessageCommand({ QueueUrl, MessageBody }));
}

export async function fillDeadLetters(service: LocalService): Promise<Partial<Observed>> {
  const sqs = sqsAt(service.outputs.SqsEndpoint);
  for (const QueueUrl of service.outputs.DeadLetterQueueUrls) {
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "{}" }));
  }
  return { queues: await depths(service) };
}

/** SQS refuses this large change as a poison record, so the publisher reports it as failed. The invocation succeeds. */
export async function failRecord(service: LocalService): Promise<Partial<Observed>> {
  const NewImage = { type: { S: "prospect" }, name: { S: "x".repeat(1_100_000) } };
  const Records = [{ dynamodb: { SequenceNumber: "1", NewImage } }];
  expect(await service.invoke("events/publish", { Records })).toEqual({ batchItemFailures: [{ itemIdentifier: "1" }] });
  return {};
}

const LONGEST_NOTE = 10_000;
/** Number of notes with the maximum length that together start a flush of the search index. */
const NOTES = 7;

/** Damages a row that activity reports and flushes read. Then it requests a report, waits for a flush, and repairs the row. */
export async function damageActivity(
  api: ReturnType<typeof apiClient>,
  table: Table,
  untilFlushed: () => Promise<void>,
): Promise<void> {
  const { company } = dataOf(await api.GET("/api/me"));
  const key = activityKeys.factState(company.id);
  const sound = { ...(await table.get(key)), ...key };
  await table.batchPut([{ ...sound, since: "damaged" }]);
  const query = { from: "2026-01-01", to: "2026-01-02", groupBy: "user" } as const;
  expect((await api.GET("/api/reports/activity", { params: { query } })).response.status).toBe(503);
  const { id } = dataOf(await api.POST("/api/prospects", { body: { name: "Noted" } }), 201);
  const note = { params: { path: { id } }, body: { body: "x".repeat(LONGEST_NOTE) } };
  for (let count = 0; count < NOTES; count++) dataOf(await api.POST("/api/prospects/{id}/notes", note), 201);
  await untilFlushed();
  await table.batchPut([sound]);
}
