/**
 * Tests the metric filters of the template. Each filter must match a line that a function has really written, and must get the metric's
 * value and dimensions from it.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { apiClient } from "../../docs/client/client.ts";
import { sqsAt } from "../../infra/local/clients.ts";
import type { LogLine } from "../../infra/local/options.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { matches, selected } from "./filter-pattern.ts";
import { at, synthesized, type Template, target } from "./template.ts";

const lines: LogLine[] = [];
let template: Template;
let service: LocalService;
let table: Table;
let receiver: Server;

beforeAll(async () => {
  receiver = createServer((_, response) => response.end()).listen(0, "127.0.0.1");
  [template, service] = await Promise.all([
    synthesized(),
    startLocal({
      port: 0,
      webhookUrlPolicy: "local",
      timeScale: 1,
      demo: true,
      onLogLine: (line) => lines.push(line),
    }),
    once(receiver, "listening"),
  ]);
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const { TableName, DynamoDbEndpoint: endpoint } = service.outputs;
  table = openTable(TableName, dynamoClient({ region: "us-east-1", credentials, endpoint }));
});
afterAll(async () => {
  await service.stop();
  receiver.close();
});

async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 50));
}

const written = (file: string, event: string): boolean =>
  lines.some((line) => line.file === file && selected(line.text, "$.message.event") === event);

async function as(email: string) {
  const token = await service.tokenOf(email);
  return { token, api: apiClient({ baseUrl: service.url, accessToken: () => token ?? "" }) };
}

async function deliver(): Promise<void> {
  const { api } = await as("owner@acme.test");
  const address = receiver.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const registrations = [{ event: "prospect.created" }];
  expect((await api.POST("/api/webhooks", { body: { name: "Filters", url, registrations } })).response.status).toBe(
    201,
  );
  expect((await api.POST("/api/prospects", { body: { name: "Filtered" } })).response.status).toBe(201);
  await until(() => written("events/deliver", "attempted"));
}

async function loseDelivery(): Promise<void> {
  const deliveryId = `dlv_${"0".repeat(29)}`;
  const MessageBody = JSON.stringify({ v: 1, companyId: 1, webhookId: 1, deliveryId, attempt: 1 });
  const { SqsEndpoint, DeliveryQueueUrl: QueueUrl } = service.outputs;
  await sqsAt(SqsEndpoint).send(new SendMessageCommand({ QueueUrl, MessageBody }));
  await until(() => written("events/deliver", "delivery missing"));
}

/** Stores a search index in a format that this version cannot read, and then calls every function that reads the index. */
async function damageIndex(): Promise<void> {
  const { api, token } = await as("owner@globex.test");
  const me = await api.GET("/api/me");
  const companyId = me.data?.company.id ?? 0;
  const upload = (await api.POST("/api/prospects/imports", { body: {} })).data?.upload;
  await table.batchPut([{ ...(await table.get(keys.indexHead(companyId))), ...keys.indexHead(companyId), format: 99 }]);
  const headers = { authorization: `Bearer ${token}` };
  for (const path of ["prospects", "prospects/pins", "prospects/export"]) {
    expect((await fetch(`${service.url}/api/${path}`, { headers })).status).toBe(503);
  }
  const body = new FormData();
  body.set("file", new File(["name,lat,lng\nImported,33.4,-112\n"], "a.csv"));
  const imported = await fetch(`${service.url}/api/prospects/import`, { method: "POST", headers, body });
  expect(imported.status).toBeGreaterThanOrEqual(500);
  await api.POST("/api/prospects/exports", { body: {} });
  if (upload === undefined || upload === null) throw new Error("no upload");
  await fetch(upload.url, {
    method: upload.method,
    headers: upload.headers,
    body: "name,lat,lng\nImported,33.4,-112\n",
  });
  // The new prospect adds an entry to the company's search index, and this entry starts a flush.
  await api.POST("/api/prospects", { body: { name: "Unflushed" } });
  await until(() => written("index/flush", "index not flushed"));
  await until(() => written("jobs/export", "message failed"));
  await until(() => written("jobs/import", "message failed"));
}

test("each filter matches some lines that its function wrote, and does not match the others", async () => {
  await deliver();
  await loseDelivery();
  await service.invoke("events/sweep", { assume: "messages-kept" });
  await damageIndex();

  const filters = template.all("AWS::Logs::MetricFilter");
  expect(filters.length).toBeGreaterThan(0);
  for (const { id, properties } of filters) {
    const pattern = String(properties.FilterPattern);
    const group = lines.filter((line) => line.group === target(properties.LogGroupName)).map(({ text }) => text);
    const found = group.filter((line) => matches(pattern, line));
    expect(found.length, `${id} ${pattern}\n${group.join("\n")}`).toBeGreaterThan(0);
    expect(found.length, id).toBeLessThan(group.length);
    const value = String(at(properties, "MetricTransformations", 0, "MetricValue"));
    const dimensions = [at(properties, "MetricTransformations", 0, "Dimensions") ?? []].flat();
    for (const line of found) {
      expect(value === "1" ? 1 : selected(line, value), id).toBeTypeOf("number");
      for (const dimension of dimensions)
        expect(selected(line, String(at(dimension, "Value"))), id).toBeTypeOf("string");
    }
  }
});
