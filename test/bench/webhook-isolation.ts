/**
 * `npm run bench:isolation` measures how late one company's webhook events arrive while another company loads the same local service. With
 * `--case hanging`, the other company's receiver does not answer while 10 000 events wait for it. With `--case fan-out`, the other company
 * changes a territory of the maximum size 30 times, and each change matches 2 000 webhook registrations. With `--case bulk`, the other
 * company changes 3 000 prospects with a bulk job, and its webhook gets an event for each change. In this case, other events of this
 * webhook are measured too. Without `--case`, all cases are measured. Options change the numbers of events, changes and prospects. The
 * exit code is 1 if a measured value exceeds its budget.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import * as limits from "#shared/limits.ts";
import { deliveryId, deliveryItem, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { messageFor } from "#shared/webhooks/messages.ts";
import { must, wholeNumber } from "../../infra/command/accepted.ts";
import { checkedOrExit } from "../../infra/command/options.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { patient } from "../harness/faulty-dynamodb.ts";
import { isHeld } from "./budget.ts";
import { headerOf, type Measured, moved, overtakes, row, type Times, textOf } from "./isolation-report.ts";

const usage = `npm run bench:isolation -- [options]
    measures whether slow or many webhooks of one company delay the webhooks of another company
    --case NAME    only one case: hanging, fan-out or bulk (default: all)
    --events N     measured events of the other company (200)
    --backlog N    hanging: waiting events of the first company (10000)
    --patches N    fan-out: changes of the territory (30)
    --records N    bulk: records of the job (3000)
exit code 0: the budgets are held, 1: a budget is not held, or any other error, 2: wrong usage`;
const Count = wholeNumber(1, 1_000_000);
const Options = z.object({
  case: z.optional(z.enum(["hanging", "fan-out", "bulk"], must("hanging or fan-out or bulk"))),
  events: z._default(Count, 200),
  backlog: z._default(Count, 10_000),
  patches: z._default(Count, 30),
  records: z._default(Count, 3_000),
});
const values = checkedOrExit(Options, usage);
const { events: EVENTS, backlog: BACKLOG, patches: PATCHES, records: RECORDS } = values;
const PER_SECOND = 5;
const MINUTE = 60_000;
const progress = (text: string): void => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);

const Made = z.object({ id: z.int(), companyId: z.int(), registrations: z.array(z.object({ id: z.int() })) });

interface Receiver {
  readonly url: string;
  /** Milliseconds from the commit of each event to the arrival of its request at the receiver. */
  readonly latencies: number[];
  readonly ids: Set<string>;
  /**
   * `requests` counts all requests, and `most` is the maximum number of concurrent ones. `lastOtherMs` is the time at which the last
   * request with an unmeasured event arrived, in milliseconds since 1970.
   */
  readonly seen: () => { requests: number; most: number; lastOtherMs: number };
  stop(): void;
}

/**
 * Starts a receiver. With `times`, it reads the time of the event's commit from each body. Without `times`, it discards the bodies, because
 * parsing them would take processor time from the service. With `only`, it measures only events of this name, and only their delivery ids
 * are in `ids`.
 */
async function receiver(
  answer: (response: ServerResponse) => void,
  { times = true, only }: { times?: boolean; only?: string } = {},
): Promise<Receiver> {
  const latencies: number[] = [];
  const ids = new Set<string>();
  let [requests, open, most, lastOtherMs] = [0, 0, 0, 0];
  const server = createServer(async (request, response) => {
    const arrived = Date.now();
    requests++;
    most = Math.max(most, ++open);
    response.on("close", () => open--);
    const isMeasured = only === undefined || request.headers["x-service-event"] === only;
    const body = times && isMeasured ? text(request) : once(request.resume(), "end").then(() => "");
    const beginning = await body.then(
      (whole) => whole.slice(0, 200),
      () => undefined,
    );
    // `beginning` is undefined if the connection was cut off because the bench ended.
    if (beginning === undefined) return;
    if (!isMeasured) {
      lastOtherMs = arrived;
      return answer(response);
    }
    ids.add(String(request.headers["x-service-delivery"]));
    const [, createdAt = ""] = /"createdAt":"([^"]+)"/.exec(beginning) ?? [];
    latencies.push(arrived - Date.parse(createdAt));
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
  return {
    url,
    latencies,
    ids,
    seen: () => ({ requests, most, lastOtherMs }),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function subscribe(
  service: LocalService,
  email: string,
  url: string,
  events: readonly string[] = ["prospect.created"],
): Promise<z.infer<typeof Made>> {
  const body = { name: "bench", url, registrations: events.map((event) => ({ event })) };
  return Made.parse(await call(service, email, "/api/webhooks", body));
}

async function call(
  service: LocalService,
  email: string,
  path: string,
  body: object | undefined,
  method: "GET" | "POST" | "PATCH" = "POST",
): Promise<unknown> {
  const headers = { Authorization: `Bearer ${await service.tokenOf(email)}`, "Content-Type": "application/json" };
  const answer = await fetch(`${service.url}${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/**
 * Creates prospects through the API at a steady rate, and waits until all their events have arrived. Throws an error if an event arrives
 * twice, or if an event has not arrived a minute after the last prospect was created.
 */
async function steady(service: LocalService, good: Receiver, email = "owner@globex.test"): Promise<Times> {
  good.latencies.length = 0;
  good.ids.clear();
  const begun = Date.now();
  for (let i = 0; i < EVENTS; i++) {
    await call(service, email, "/api/prospects", { name: `bench ${i}` });
    await wait(Math.max(0, begun + ((i + 1) * 1_000) / PER_SECOND - Date.now()));
  }
  for (const end = Date.now() + MINUTE; good.latencies.length < EVENTS && Date.now() < end; ) await wait(50);
  if (good.latencies.length < EVENTS) throw new Error(`only ${good.latencies.length} of ${EVENTS} events arrived`);
  if (good.ids.size < good.latencies.length) throw new Error("an event arrived twice");
  const sorted = good.latencies.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
  return { p50: at(0.5), p99: at(0.99), worst: at(1) };
}

/**
 * Commits an event after `BACKLOG` waiting deliveries. Returns the milliseconds until the event arrives, or NaN if this takes more than a
 * minute. The local stream has only one shard, so the publisher must first read the stream records of all these deliveries.
 */
async function readBehind(service: LocalService, good: Receiver): Promise<number> {
  good.latencies.length = 0;
  await call(service, "owner@globex.test", "/api/prospects", { name: "behind" });
  for (const end = Date.now() + MINUTE; good.latencies.length === 0 && Date.now() < end; ) await wait(10);
  return good.latencies[0] ?? Number.NaN;
}

/** Writes `BACKLOG` waiting deliveries to the table and sends their messages to the delivery queue, as the publisher does for events. */
async function backlog({ outputs }: LocalService, { id: webhookId, companyId, registrations }: z.infer<typeof Made>) {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_SQS: outputs.SqsEndpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  });
  const client = dynamoClient({ endpoint: outputs.DynamoDbEndpoint, region: "us-east-1", credentials, ...patient });
  const now = iso(Date.now());
  const registrationId = registrations[0]?.id ?? 0;
  const deliveries = Array.from({ length: BACKLOG }, (_, i): StoredDelivery => {
    const id = deliveryId(`bench:${i}`, registrationId, now);
    return {
      type: "delivery",
      id,
      companyId,
      webhookId,
      registrationId,
      event: "prospect.created",
      eventId: `bench:${i}`,
      trigger: "manual",
      state: "waiting",
      attempt: 1,
      planFrom: 1,
      dueAt: now,
      dueShard: keys.dueShard(id),
      body: JSON.stringify({ id, event: "prospect.created", createdAt: now, trigger: "manual", data: { number: i } }),
      createdAt: now,
      updatedAt: now,
      expiresAt: Math.floor(Date.now() / 1_000) + 86_400,
    };
  });
  await openTable(outputs.TableName, client).batchPut(deliveries.map(deliveryItem));
  const queue = openQueue(outputs.DeliveryQueueUrl);
  await queue.send(deliveries.map((delivery) => ({ message: messageFor(delivery), delaySeconds: 0 })));
}

const header = headerOf(`${EVENTS} events, ${PER_SECOND} a second`);

async function besideHanging(): Promise<Measured> {
  const service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo: true });
  const good = await receiver((response) => void response.end());
  const hanging = await receiver(() => undefined);
  try {
    await subscribe(service, "owner@globex.test", good.url);
    const troubled = await subscribe(service, "owner@acme.test", hanging.url);
    progress("warm up");
    await steady(service, good);
    progress("alone");
    const alone = await steady(service, good);
    progress("backlog");
    await backlog(service, troubled);
    const behind = await readBehind(service, good);
    progress("beside");
    const beside = await steady(service, good);
    const { requests, most } = hanging.seen();
    const lines = [
      ...header,
      row("alone", alone),
      row(`beside ${BACKLOG} events of another company for a receiver that hangs`, beside),
      "",
      `An event right after the backlog was written took ${behind} ms, because the stream delivers the backlog first.`,
      `The receiver that hangs got ${requests} requests meanwhile, ${most} at once.`,
    ];
    return { lines, budgets: [moved("events of another company for a receiver that hangs", beside, alone)] };
  } finally {
    good.stop();
    hanging.stop();
    await service.stop();
  }
}

const Territory = z.object({ id: z.int() });

/**
 * Measures the events of one company while another company changes a territory of the maximum size. The other company has the maximum
 * number of webhook registrations, with a delay of `delayMinutes`.
 */
async function besideFanOut(delayMinutes: number): Promise<Measured> {
  const service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo: true });
  const good = await receiver((response) => void response.end());
  const flooded = await receiver((response) => void response.end(), { times: false });
  try {
    await subscribe(service, "owner@globex.test", good.url);
    const registrations = Array.from({ length: limits.registrationsPerWebhook }, () => ({
      event: "territory.updated",
      delayMinutes,
    }));
    for (let i = 0; i < limits.webhooksPerCompany; i++) {
      await call(service, "owner@acme.test", "/api/webhooks", { name: `${i}`, url: flooded.url, registrations });
    }
    const polygon = Array.from({ length: limits.polygonPointsMax }, () => [-Math.random() * 180, Math.random() * 90]);
    const territory = Territory.parse(await call(service, "rep@acme.test", "/api/territories", { polygon }));
    progress("warm up");
    await steady(service, good);
    progress("alone");
    const alone = await steady(service, good);
    progress(`${PATCHES} changes, delay ${delayMinutes}`);
    const begun = Date.now();
    const changed = change(service, territory.id);
    const first = await steady(service, good);
    const sentFirst = flooded.ids.size;
    await changed;
    // The service has delayed some deliveries of the other company. After this wait they are due. The measurement is then repeated while
    // the service sends them.
    await wait(Math.max(0, begun + delayMinutes * MINUTE - Date.now()));
    progress("and on");
    const second = await steady(service, good);
    const again = flooded.latencies.length - flooded.ids.size;
    const matches = limits.webhooksPerCompany * limits.registrationsPerWebhook;
    const what = `beside ${PATCHES} changes of a territory of ${limits.polygonPointsMax} points for ${matches} registrations`;
    const name = `${what}, ${delayMinutes === 0 ? "without delay" : `delay ${delayMinutes} min`}`;
    const lines = [
      ...header,
      row("alone", alone),
      row(name, first),
      row("the same, while the rest of them is sent", second),
      "",
      `The flooded receiver got ${sentFirst} and then ${flooded.ids.size} deliveries, ${again} of them twice.`,
    ];
    const text = "changes of a territory of another company";
    return { lines, budgets: [moved(text, first, alone), moved(`${text}, the rest of them`, second, alone)] };
  } finally {
    good.stop();
    flooded.stop();
    await service.stop();
  }
}

async function change(service: LocalService, territoryId: number): Promise<void> {
  for (let i = 0; i < PATCHES; i++) {
    await call(service, "rep@acme.test", `/api/territories/${territoryId}`, { name: `changed ${i}` }, "PATCH");
  }
}

const seconds = (ms: number): number => Math.round(ms / 1_000);

const Counted = z.object({ count: z.int() });
const Job = z.object({ id: z.int(), state: z.string(), changed: z.int() });

/** Imports prospects for a company in one request. */
async function importProspects(service: LocalService, email: string): Promise<void> {
  const rows = Array.from({ length: RECORDS }, (_, i) => `bulk ${i},39.5,-105\n`);
  const form = new FormData();
  form.append("file", new Blob([`name,lat,lng\n${rows.join("")}`], { type: "text/csv" }), "bulk.csv");
  const headers = { Authorization: `Bearer ${await service.tokenOf(email)}` };
  const answer = await fetch(`${service.url}/api/prospects/import`, { method: "POST", headers, body: form });
  if (!answer.ok) throw new Error(`import: ${answer.status} ${await answer.text()}`);
}

/**
 * Measures events while one company changes thousands of prospects with a bulk job, and one of its webhooks gets an event for each change.
 * The measured events are other events of the same webhook, and the events of another company.
 */
async function besideBulk(): Promise<Measured> {
  const service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo: true });
  const own = "owner@acme.test";
  const good = await receiver((response) => void response.end());
  const flooded = await receiver((response) => void response.end(), { only: "prospect.created" });
  try {
    await subscribe(service, "owner@globex.test", good.url);
    await subscribe(service, own, flooded.url, ["prospect.created", "prospect.updated"]);
    await importProspects(service, own);
    const both = () => Promise.all([steady(service, good), steady(service, flooded, own)]);
    progress("warm up");
    await both();
    progress("alone");
    const [alone, ownAlone] = await both();
    const { id: assignedToUserId } = z
      .object({ user: z.object({ id: z.int() }) })
      .parse(await call(service, "rep@acme.test", "/api/me", undefined, "GET")).user;
    const change = { filter: { search: "bulk" }, action: { set: { assignedToUserId } }, events: "each" };
    const { count } = Counted.parse(await call(service, own, "/api/prospects/bulk", { ...change, dryRun: true }));
    progress(`a bulk job of ${count}`);
    const job = Job.parse(await call(service, own, "/api/prospects/bulk", { ...change, expectedCount: count }));
    const begun = Date.now();
    const before = flooded.seen().requests;
    let endedMs = begun;
    const ended = (async () => {
      for (;;) {
        const { state } = Job.parse(await call(service, own, `/api/jobs/${job.id}`, undefined, "GET"));
        if (state !== "queued" && state !== "running") break;
        await wait(500);
      }
      endedMs = Date.now();
    })();
    const [beside, ownBeside] = await both();
    const sent = flooded.seen().requests - before - EVENTS;
    await ended;
    for (const end = Date.now() + 5 * MINUTE; flooded.seen().requests < before + EVENTS + count; ) {
      if (Date.now() > end) throw new Error("not all events of the bulk job arrived");
      await wait(100);
    }
    const { lastOtherMs } = flooded.seen();
    const lines = [
      ...header,
      row("another company, alone", alone),
      row(`another company, beside a bulk job of ${count} prospects with an event for each`, beside),
      row("the same webhook, alone", ownAlone),
      row("the same webhook, beside its bulk events", ownBeside),
      "",
      `The job took ${seconds(endedMs - begun)} s. ${sent} of its ${count} events arrived during the measurement, all after ` +
        `${seconds(lastOtherMs - begun)} s.`,
    ];
    const [other, same] = ["bulk events of another company", "bulk events of the same webhook"];
    const lastMs = lastOtherMs - endedMs;
    return { lines, budgets: [overtakes(other, beside, alone, lastMs), overtakes(same, ownBeside, ownAlone, lastMs)] };
  } finally {
    good.stop();
    flooded.stop();
    await service.stop();
  }
}

const cases: Record<string, readonly (() => Promise<Measured>)[]> = {
  hanging: [besideHanging],
  "fan-out": [() => besideFanOut(0), () => besideFanOut(1)],
  bulk: [besideBulk],
};
const chosen = values.case === undefined ? Object.values(cases).flat() : (cases[values.case] ?? []);
for (const run of chosen) {
  const measured = await run();
  console.log(textOf(measured));
  if (!measured.budgets.every(isHeld)) process.exitCode = 1;
}
