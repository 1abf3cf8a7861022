/** Measures the time from an event's commit to its arrival at the receiver, and for comparison the time of plain HTTP posts. */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { openKms } from "#shared/aws/kms.ts";
import { iso } from "#shared/clock.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { openSecrets } from "#shared/secrets/key-service.ts";
import { provideSecrets } from "#shared/secrets/secrets.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { LOCAL, tableAt } from "../harness/faulty-dynamodb.ts";
import { outputsOf } from "../harness/local-outputs.ts";
import { createWebhook } from "../harness/verbs.ts";
import { createdProspect } from "../webhooks/fixtures.ts";
import { startService } from "./started-service.ts";

export interface DeliveryTimes {
  readonly perSecond: number;
  readonly events: number;
  readonly ours: Arrivals;
  readonly bare: Arrivals;
}

interface Arrivals {
  /** Median (p50) and 99th percentile (p99) of the milliseconds from commit to arrival. */
  readonly p50: number;
  readonly p99: number;
  /** Events per second, counted from the first commit to the last arrival. */
  readonly throughput: number;
}

const RATES = [
  { perSecond: 10, seconds: 15 },
  { perSecond: 100, seconds: 10 },
  { perSecond: 800, seconds: 5 },
] as const;
const PATIENCE_MS = 300_000;

/** Events before the measurement. After them, all functions are started and V8 has compiled the code. */
const WARM_UP = { events: 4_000, perSecond: 400 };
/**
 * Milliseconds between two commits. A commit writes the prospects of several events, because one API request for each event would take
 * processor time from the service, which shares the machine with this process.
 */
const COMMITS_EVERY_MS = 10;

export async function deliveryTimes(): Promise<DeliveryTimes[]> {
  const receiver = await startReceiver();
  const service = await startService();
  try {
    const { commit, post } = await setScene(service.url, receiver);
    await paced(WARM_UP.events, WARM_UP.perSecond, commit, receiver);
    const times: DeliveryTimes[] = [];
    for (const { perSecond, seconds } of RATES) {
      const events = perSecond * seconds;
      const ours = await paced(events, perSecond, commit, receiver);
      times.push({ perSecond, events, ours, bare: await paced(events, perSecond, post, receiver) });
    }
    return times;
  } finally {
    await service.stop();
    receiver.close();
  }
}

const Received = z.object({ data: z.object({ prospect: z.object({ id: z.number() }) }) });

async function startReceiver() {
  const arrivals = new Map<number, PromiseWithResolvers<number>>();
  const at = (id: number): PromiseWithResolvers<number> => {
    const known = arrivals.get(id) ?? Promise.withResolvers<number>();
    arrivals.set(id, known);
    return known;
  };
  /** The first webhook body that arrived. The plain posts send the same body. */
  let sample = "";
  const { endpoint, stop } = await serveOnLoopback(async (incoming, response) => {
    const body = await text(incoming);
    const now = performance.now();
    if (sample === "") sample = body;
    at(Number(incoming.headers["x-bare"] ?? Received.parse(JSON.parse(body)).data.prospect.id)).resolve(now);
    response.writeHead(204).end();
  });
  return { url: `${endpoint}/`, sample: () => sample, arrival: (id: number) => at(id).promise, close: stop };
}
type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Causes the events with these ids, by commits to the table or by plain posts. Returns the start time of each event. */
type Act = (ids: readonly number[]) => Promise<readonly number[]>;

async function setScene(url: string, receiver: Receiver): Promise<{ commit: Act; post: Act }> {
  const outputs = await outputsOf(url);
  const { TableName, DynamoDbEndpoint, SecretsKeyArn, KmsEndpoint: endpoint } = outputs;
  provideSecrets((table) => openSecrets(table, () => openKms(SecretsKeyArn, { endpoint, ...LOCAL })));
  const context = contextOn(tableAt(DynamoDbEndpoint, TableName));
  const owner = { email: "owner@bench.test", firstName: "O", lastName: "B", sub: "bench" };
  const { company } = await createCompany(context, { name: "Bench", owner });
  const registration = { event: "prospect.created", filter: null, delayMinutes: 0, manualTriggerButtonText: null };
  const registrations = [{ ...registration, triggerMode: "automatic" as const }];
  // `createWebhook` checks the receiver's URL in this process, so this process must allow URLs of this machine.
  process.env.WEBHOOK_URL_POLICY = "local";
  await createWebhook(context, company.id, { name: "Bench", url: receiver.url, registrations });
  return { commit: (ids) => commitProspects(context, company.id, ids), post: (ids) => postBare(receiver, ids) };
}

async function commitProspects({ table }: ApiContext, companyId: number, ids: readonly number[]): Promise<number[]> {
  const now = iso(Date.now());
  const rowOf = (id: number) => prospectItem({ ...createdProspect(companyId, id), createdAt: now, updatedAt: now });
  await table.batchPut(ids.map((id) => ({ ...keys.prospect(companyId, id), ...rowOf(id) })));
  const committed = performance.now();
  return ids.map(() => committed);
}

let lastPost: Promise<unknown> = Promise.resolve();
/** Keeps connections open between the plain posts, as the service does between deliveries. */
const agent = new Agent({ keepAlive: true });

const postBare = (receiver: Receiver, ids: readonly number[]): Promise<number[]> =>
  Promise.all(ids.map((id) => postOne(receiver, id)));

async function postOne({ url, sample }: Receiver, id: number): Promise<number> {
  const from = performance.now();
  const body = sample();
  const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body), "X-Bare": id };
  const before = lastPost;
  lastPost = (async () => {
    await before;
    const sent = request(url, { method: "POST", agent, headers }).end(body);
    const [response] = await once(sent, "response");
    response.resume();
    await once(response, "end");
  })();
  await lastPost;
  return from;
}

let nextId = 1_000_000;

/** Causes events at a fixed rate, and waits until all have arrived. Throws an error if some are missing after `PATIENCE_MS`. */
async function paced(events: number, perSecond: number, act: Act, receiver: Receiver): Promise<Arrivals> {
  const start = performance.now();
  const latencies: Promise<{ arrival: number; latency: number }>[] = [];
  const together = Math.max(1, Math.round((perSecond * COMMITS_EVERY_MS) / 1_000));
  for (let made = 0; made < events; made += together) {
    const early = start + (made * 1_000) / perSecond - performance.now();
    if (early > 1) await wait(early);
    const ids = Array.from({ length: together }, () => nextId++);
    const acted = act(ids);
    for (const [i, id] of ids.entries()) {
      const times = Promise.all([acted, receiver.arrival(id)]);
      latencies.push(times.then(([from, arrival]) => ({ arrival, latency: arrival - (from[i] ?? 0) })));
    }
  }
  const timeout = new AbortController();
  const tooLate = wait(PATIENCE_MS, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`of ${events} events some have not arrived`);
  });
  const arrived = await Promise.race([Promise.all(latencies), tooLate]);
  tooLate.catch(() => undefined);
  timeout.abort();
  const sorted = arrived.map(({ latency }) => latency).toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const last = Math.max(...arrived.map(({ arrival }) => arrival));
  return { p50: Math.max(0, at(0.5)), p99: Math.max(0, at(0.99)), throughput: (1_000 * events) / (last - start) };
}
