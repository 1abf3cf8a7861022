/** Turns each alarm on once, by log lines, statuses and queues of a local service. In normal operation, no alarm may be on. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { factState } from "#shared/db/activity-keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { type ApiClient, apiClient } from "../../../docs/client/client.ts";
import type { LogLine } from "../../../infra/local/options.ts";
import { sqsAt } from "../../../infra/local/servers/clients.ts";
import { type LocalServer, serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { type LocalService, startLocal } from "../../../infra/local/service.ts";
import { canary } from "../../../infra/routes/routes.ts";
import { logQueries } from "../../../infra/stack/queries.ts";
import { templatesInOrder } from "../../../infra/synth.ts";
import { tableAt } from "../../harness/faulty-dynamodb.ts";
import { dataOf, present } from "../../harness/shapes.ts";
import { at, type Fields, synthesized, type Template, target, withBackups } from "../template.ts";
import { failures, foreign, loggedBackupEvents, successes } from "./backup-events.ts";
import { alarmsByName, isOn, matches, metricOf, type Observed, selected } from "./cloudwatch.ts";

const lines: LogLine[] = [];
let statuses: number[] = [];
let template: Template;
let service: LocalService;
let table: Table;
/** Receives webhooks, simulates Parameter Store for the scheduled smoke test, and forwards the smoke test's requests to the service. */
let server: LocalServer;
let canaryToken = "";
let normal: Observed;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await buffer(request);
  if (request.headers["x-amz-target"] === "AmazonSSM.GetParameter") {
    const Value = JSON.stringify({ accessToken: canaryToken });
    response.setHeader("Content-Type", "application/x-amz-json-1.1").end(JSON.stringify({ Parameter: { Value } }));
    return;
  }
  const path = /^\/forwarded(\/.*)$/.exec(request.url ?? "")?.[1];
  if (path === undefined || service === undefined) {
    response.end();
    return;
  }
  const { method = "GET", headers: sent } = request;
  const signature = { "x-service-signature": String(sent["x-service-signature"] ?? "") };
  const headers = { authorization: sent.authorization ?? "", ...signature, "content-type": "application/json" };
  const answered = await fetch(`${service.url}${path}`, { method, headers, ...(body.length > 0 && { body }) });
  response.writeHead(answered.status, { "Content-Type": "application/json" }).end(await answered.text());
}

/** Returns templates whose scheduled smoke test sends its requests to the server of this test. */
async function withCanary(...[config, outDir]: Parameters<typeof templatesInOrder>): Promise<unknown[]> {
  const watched = { ...config, watch: { ...config.watch, canary: true } };
  const templates = await templatesInOrder(watched, outDir);
  for (const { Resources } of templates) {
    for (const [id, { Type, Metadata, Properties }] of Object.entries(Resources)) {
      // The local service does not support this type of resource, which only limits the retries of the scheduled smoke test.
      if (Type === "AWS::Lambda::EventInvokeConfig") delete Resources[id];
      const variables = at(Properties, "Environment", "Variables");
      if (Metadata.file !== canary.file || typeof variables !== "object" || variables === null) continue;
      Object.assign(variables, { API_URL: `${server.endpoint}/forwarded`, AWS_ENDPOINT_URL_SSM: server.endpoint });
    }
  }
  return templates;
}

beforeAll(async () => {
  server = await serveOnLoopback(answer);
  [template, service] = await Promise.all([
    synthesized(withBackups),
    startLocal({
      port: 0,
      webhookUrlPolicy: "local",
      timeScale: 1,
      demo: true,
      synthesize: withCanary,
      onLogLine: (line) => lines.push(line),
    }),
  ]);
  table = tableAt(service.outputs.DynamoDbEndpoint, service.outputs.TableName);
  // The schedule calls the smoke test at the start. This call fails without a token, and must not count as normal operation.
  await until(() => ended(canary.file));
  normal = await observe(operate);
});
afterAll(async () => {
  await service.stop();
  server.stop();
});

async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 50));
}

const written = (file: string, event: string): boolean =>
  lines.some((line) => line.file === file && selected(line.text, "$.message.event") === event);

const ended = (file: string, from = 0): boolean =>
  lines.slice(from).some((line) => line.file === file && selected(line.text, "$.type") === "platform.report");

async function as(email: string) {
  const token = present(await service.tokenOf(email));
  return { token, api: apiClient({ baseUrl: service.url, accessToken: () => token }) };
}

/** Begins an import. Returns a function that uploads the file of the import. */
async function beginImport(api: ApiClient) {
  const { url, method, headers } = present(dataOf(await api.POST("/api/prospects/imports", { body: {} }), 201).upload);
  return () => fetch(url, { method, headers, body: "name,lat,lng\nAnn,39.7,-105\n" });
}

async function depths(): Promise<Observed["queues"]> {
  const found = Object.entries(await service.queues());
  return Object.fromEntries(found.map(([id, { waiting }]) => [id, { visible: waiting, oldestSeconds: 0 }]));
}

async function sendTo(QueueUrl: string, MessageBody: string): Promise<void> {
  await sqsAt(service.outputs.SqsEndpoint).send(new SendMessageCommand({ QueueUrl, MessageBody }));
}

async function status(path: string, init?: RequestInit): Promise<number> {
  const { status } = await fetch(`${service.url}${path}`, init);
  statuses.push(status);
  return status;
}

/** Executes `work`, and returns what happened meanwhile as the data of one period. */
async function observe(work: () => Promise<Partial<Observed>>): Promise<Observed> {
  const from = lines.length;
  statuses = [];
  const more = await work();
  return { lines: lines.slice(from), statuses, refused: {}, recordAges: {}, queues: {}, ...more };
}

/** A normal day: a change with its webhook, lists, an import, an export, a call of the sweeper, and the smoke test. */
async function operate(): Promise<Partial<Observed>> {
  const from = lines.length;
  await deliver();
  const { api, token } = await as("owner@acme.test");
  expect(await status("/api/prospects", { headers: { authorization: `Bearer ${token}` } })).toBe(200);
  expect(await status("/api/prospects")).toBe(401);
  await api.POST("/api/prospects/exports", { body: {} });
  await (await beginImport(api))();
  await service.invoke("events/sweep", { assume: "messages-kept" });
  canaryToken = token;
  await service.invoke(canary.file, {});
  for (const file of ["jobs/export", "jobs/import", "index/flush"]) await until(() => ended(file, from));
  lines.push(...loggedBackupEvents(template, [...successes, ...foreign]));
  return { queues: await depths() };
}

/** Creates a webhook, and then a prospect whose creation causes an event for the webhook. */
async function createWatched(registration: { event: string; delayMinutes?: number }): Promise<void> {
  const { api } = await as("owner@acme.test");
  const body = { name: "Watching", url: server.endpoint, registrations: [registration] };
  dataOf(await api.POST("/api/webhooks", { body }), 201);
  dataOf(await api.POST("/api/prospects", { body: { name: "Watched" } }), 201);
}

/** Makes a change with a webhook, and waits until the functions that read the stream have processed it. */
async function deliver(): Promise<void> {
  const from = lines.length;
  await createWatched({ event: "prospect.created" });
  await until(() => written("events/deliver", "attempted") && ended("index/flush", from));
}

async function loseDelivery(): Promise<Partial<Observed>> {
  const deliveryId = `dlv_${"0".repeat(29)}`;
  const message = { v: 1, companyId: 1, webhookId: 1, deliveryId, attempt: 1 };
  await sendTo(service.outputs.DeliveryQueueUrl, JSON.stringify(message));
  await until(() => written("events/deliver", "delivery missing"));
  return {};
}

/** Gives a search index an unknown format number, calls functions that read it, and waits until flush, export and import have failed. */
async function damageIndex(): Promise<Partial<Observed>> {
  const { api, token } = await as("owner@globex.test");
  const head = keys.indexHead(dataOf(await api.GET("/api/me")).company.id);
  const upload = await beginImport(api);
  await table.batchPut([{ ...(await table.get(head)), ...head, format: 99 }]);
  const headers = { authorization: `Bearer ${token}` };
  for (const path of ["prospects", "prospects/pins", "prospects/export", "prospects", "prospects", "prospects"]) {
    expect(await status(`/api/${path}`, { headers })).toBe(503);
  }
  const body = new FormData();
  body.set("file", new File(["name,lat,lng\nImported,33.4,-112\n"], "a.csv"));
  const imported = await fetch(`${service.url}/api/prospects/import`, { method: "POST", headers, body });
  expect(imported.status).toBeGreaterThanOrEqual(500);
  await api.POST("/api/prospects/exports", { body: {} });
  await upload();
  // This prospect adds an unflushed entry to the search index, so that the stream starts the flush function.
  await api.POST("/api/prospects", { body: { name: "Unflushed" } });
  await until(() => written("index/flush", "index not flushed"));
  await until(() => written("jobs/export", "message failed"));
  await until(() => written("jobs/import", "message failed"));
  return {};
}

/** Calls a function with an event that it cannot read. */
async function fail(file: string): Promise<Partial<Observed>> {
  await service.invoke(file, {}).catch(() => undefined);
  return {};
}

/**
 * A local service cannot cause throttles, late records and old messages. For example, it lets a call wait that Lambda would refuse. The
 * next functions therefore only return the numbers that AWS would report.
 */
const throttle = (file: string) => async (): Promise<Partial<Observed>> => ({ refused: { [file]: 1 } });

const LATE_MS = 10 * 60_000;
const late = (file: string) => async (): Promise<Partial<Observed>> => ({ recordAges: { [file]: LATE_MS } });

async function leaveMessage(): Promise<Partial<Observed>> {
  const queues = template.all("AWS::SQS::Queue");
  const delivery = queues.find(({ id }) => service.outputs.DeliveryQueueUrl.endsWith(`/${id}`));
  return { queues: { [delivery?.id ?? ""]: { visible: 1, oldestSeconds: 31 * 60 } } };
}

/** Creates a delivery that waits, changes its due time to the past, and runs the sweeper. */
async function leaveDelivery(): Promise<Partial<Observed>> {
  await createWatched({ event: "prospect.created", delayMinutes: 60 });
  for (let waiting = undefined; waiting === undefined; ) {
    for (const pk of keys.dueShards()) {
      for await (const entry of table.query({ pk, index: "due" })) {
        const row = z.looseObject({ pk: z.string(), sk: z.string(), dueAt: z.string() }).parse(entry);
        if (row.sk.startsWith("D#") && Date.parse(row.dueAt) > Date.now() + 30 * 60_000) waiting = row;
      }
    }
    if (waiting !== undefined) {
      const { pk, sk } = waiting;
      const dueAt = new Date(Date.now() - 20 * 60_000).toISOString();
      await table.batchPut([{ ...(await table.get({ pk, sk })), pk, sk, dueAt }]);
    }
  }
  await service.invoke("events/sweep", { assume: "messages-kept" });
  return {};
}

/** Sends a message that the delivery function cannot read. The function reports the message as failed, and its invocation succeeds. */
async function failMessage(): Promise<Partial<Observed>> {
  const from = lines.length;
  await sendTo(service.outputs.DeliveryQueueUrl, "{}");
  await until(() => lines.slice(from).some(({ text }) => selected(text, "$.message.event") === "message failed"));
  return {};
}

async function fillDeadLetters(): Promise<Partial<Observed>> {
  for (const url of service.outputs.DeadLetterQueueUrls) await sendTo(url, "{}");
  return { queues: await depths() };
}

/** This poison record is too large for SQS, so the publisher reports it as failed. The invocation of the publisher still succeeds. */
async function failRecord(): Promise<Partial<Observed>> {
  const NewImage = { type: { S: "prospect" }, name: { S: "x".repeat(1_100_000) } };
  const Records = [{ dynamodb: { SequenceNumber: "1", NewImage } }];
  expect(await service.invoke("events/publish", { Records })).toEqual({ batchItemFailures: [{ itemIdentifier: "1" }] });
  return {};
}

const LONGEST_NOTE = 10_000;
/** Number of notes with the maximum length that together start a flush of the search index. */
const NOTES = 7;

/** Damages a row that activity reports and flushes read. Then it requests a report, waits for a flush, and repairs the row. */
async function damageActivity(): Promise<Partial<Observed>> {
  const { api } = await as("owner@acme.test");
  const key = factState(dataOf(await api.GET("/api/me")).company.id);
  const sound = { ...(await table.get(key)), ...key };
  await table.batchPut([{ ...sound, since: "damaged" }]);
  const query = { from: "2026-01-01", to: "2026-01-02", groupBy: "user" } as const;
  expect((await api.GET("/api/reports/activity", { params: { query } })).response.status).toBe(503);
  const { id } = dataOf(await api.POST("/api/prospects", { body: { name: "Noted" } }), 201);
  const note = { params: { path: { id } }, body: { body: "x".repeat(LONGEST_NOTE) } };
  for (let count = 0; count < NOTES; count++) dataOf(await api.POST("/api/prospects/{id}/notes", note), 201);
  await until(() => written("index/flush", "activity not summed up"));
  await table.batchPut([sound]);
  return {};
}

/** The keys are the names of the alarms. Each function causes the fault that turns its alarm on. */
const faults: Readonly<Record<string, () => Promise<Partial<Observed>>>> = {
  "publisher-fails Errors": () => fail("events/publish"),
  "publisher-fails FailedRecords": failRecord,
  "publisher-throttled": throttle("events/publish"),
  "publisher-late": late("events/publish"),
  "index-flush-fails Errors": () => fail("index/flush"),
  "index-flush-fails FailedFlushes": damageIndex,
  "index-flush-throttled": throttle("index/flush"),
  "index-flush-late": late("index/flush"),
  "delivery-function-fails Errors": () => fail("events/deliver"),
  "delivery-function-fails FailedDeliveryMessages": failMessage,
  "delivery-function-throttled": throttle("events/deliver"),
  "delivery-missing": loseDelivery,
  "deliveries-overdue": leaveDelivery,
  "sweeper-fails": () => fail("events/sweep"),
  "sweeper-stopped": async () => ({}),
  "smoke-test-fails": async () => {
    canaryToken = "expired";
    await service.invoke(canary.file, {}).catch(() => undefined);
    return {};
  },
  "failed-deliveries": fillDeadLetters,
  "failed-imports": fillDeadLetters,
  "failed-exports": fillDeadLetters,
  "failed-bulk-jobs": fillDeadLetters,
  "poison-records": fillDeadLetters,
  "unflushed-indexes": fillDeadLetters,
  "delivery-queue-late": leaveMessage,
  "server-errors": damageIndex,
  "damaged-index": damageIndex,
  "damaged-activity": damageActivity,
  "copies-fail": async () => {
    lines.push(...loggedBackupEvents(template, failures));
    return {};
  },
  // This alarm goes off if AWS Backup reports no completed copy, so nothing need happen.
  "no-copy-for-two-days": async () => ({}),
};

/** All alarms except that of the account's concurrency, which has an expression instead of a metric (alarms.deep.test.ts). */
const alarms = () =>
  template
    .all("AWS::CloudWatch::Alarm")
    .flatMap(({ properties }) => (properties.Metrics === undefined ? [properties] : []));
const alarmOf = (name: string): Fields => alarmsByName(alarms()).get(name) ?? {};

describe("an alarm", () => {
  test("is off in normal operation", () => {
    const on = alarms().filter((alarm) => isOn(alarm, metricOf(template, alarm, normal)));
    expect(on.map((alarm) => [alarm.AlarmDescription, metricOf(template, alarm, normal)])).toEqual([]);
  });

  test("has a fault in this test, whichever it is", () => {
    expect(Object.keys(faults).toSorted()).toEqual([...alarmsByName(alarms()).keys()].toSorted());
  });

  test.each(Object.entries(faults))("goes off by its fault: %s", async (title, fault) => {
    const alarm = alarmOf(title);
    const faulty = metricOf(template, alarm, await observe(fault));
    expect(isOn(alarm, faulty), `${title}: ${faulty}`).toBe(true);
  });
});

test("the queries of the logs read fields that real lines have", () => {
  const fields = Object.values(logQueries)
    .filter(({ source }) => source === "functions")
    .flatMap(({ query }) => query.flatMap((part) => part.match(/\b(?:message|record)\.\w+/g) ?? []));
  for (const field of new Set(fields)) {
    expect(
      lines.some(({ text }) => selected(text, `$.${field}`) !== undefined),
      field,
    ).toBe(true);
  }
});

test("each filter matches some lines that its function wrote, and does not match the others", async () => {
  const filters = template.all("AWS::Logs::MetricFilter");
  expect(filters.length).toBeGreaterThan(0);
  for (const { id, properties } of filters) {
    const pattern = String(properties.FilterPattern);
    const group = lines.filter((line) => line.group === target(properties.LogGroupName)).map(({ text }) => text);
    const found = group.filter((line) => matches(pattern, line));
    expect(found.length, `${id} ${pattern}\n${group.join("\n")}`).toBeGreaterThan(0);
    expect(found.length, id).toBeLessThan(group.length);
    const value = String(at(properties, "MetricTransformations", 0, "MetricValue"));
    for (const line of found) expect(value === "1" ? 1 : selected(line, value), id).toBeTypeOf("number");
  }
});
