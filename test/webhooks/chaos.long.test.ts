/**
 * Tests that the service keeps every accepted write and delivers every event once, while DynamoDB throttles calls, reports conflicts and
 * loses replies, and after the service was killed under load.
 */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod/mini";
import { systemClock } from "#shared/clock.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { type ApiClient, apiClient } from "../../docs/client/client.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { at } from "../harness/client.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { conflict, pass, tableAt, throttle } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { type Receipt, startReceiver } from "../harness/receiver.ts";
import { dataOf, Identified } from "../harness/shapes.ts";
import { sized } from "../harness/tier.ts";
import { restartable } from "../jobs/restarted-service.ts";

/** Number of writes. It is high enough to start a flush. */
const WRITES = sized({ short: 70, wide: 1_000 });
const AT_ONCE = 8;
const SETTLED_MS = 240_000;

const db = faultyDynamoDb();
let service: LocalService;
beforeAll(async () => {
  service = await startLocal({
    port: 0,
    webhookUrlPolicy: "local",
    timeScale: 60,
    demo: true,
    dynamoDbEndpoint: db.endpoint,
    verbose: process.env.LOG === "1",
  });
});
afterAll(async () => {
  await service?.stop();
});

const Received = z.object({ data: z.object({ prospect: Identified }) });
const prospectIn = ({ event }: Receipt): number => z.parse(Received, event).data.prospect.id;

async function as(email: string): Promise<ApiClient> {
  const token = (await service.tokenOf(email)) ?? "";
  return apiClient({ baseUrl: service.url, accessToken: () => token });
}

/** Repeats the request until it is accepted. */
async function accepted<Data>(ask: () => Promise<{ data?: Data; error?: unknown; response: Response }>): Promise<Data> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const { data, error, response } = await ask();
    if (data !== undefined) return data;
    expect([409, 503], JSON.stringify(error)).toContain(response.status);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error("the request was never accepted");
}

test(`${WRITES} writes under faults are all kept, delivered once and indexed`, { tags: "sized" }, async () => {
  const [rep, admin] = [await as("rep@acme.test"), await as("admin@acme.test")];
  const receiver = await startReceiver();
  const registrations = [{ event: "prospect.created" }, { event: "prospect.updated" }];
  dataOf(await admin.POST("/api/webhooks", { body: { name: "Chaos", url: receiver.url, registrations } }), 201);

  const random = randomSequence(7);
  db.plan((operation) => {
    if (!/^(Get|Put|Update|Delete|Query|Transact|Batch)/.test(operation)) return pass;
    const dice = random();
    if (dice < 0.15) return throttle;
    if (dice < 0.25) return { kind: "lose reply" };
    return dice < 0.3 && operation === "TransactWriteItems" ? conflict : pass;
  });

  const created: number[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < WRITES) {
        const n = next++;
        const headers = { "Idempotency-Key": `chaos-${n}` };
        const { id } = await accepted(() => rep.POST("/api/prospects", { body: { name: `chaos ${n}` }, headers }));
        created.push(id);
        const patch = { params: { path: { id } }, body: { phoneNumber: String(n) } };
        if (n % 3 === 0) await accepted(() => rep.PATCH("/api/prospects/{id}", patch));
      }
    }),
  );
  db.plan(() => pass);

  const listed = dataOf(await rep.GET("/api/prospects", { params: { query: { search: "chaos" } } }));
  expect([listed.total, new Set(created).size]).toEqual([WRITES, WRITES]);

  const expected = WRITES + Math.ceil(WRITES / 3);
  const received = () => new Set(receiver.receipts.map(({ event }) => event.id));
  await expect.poll(() => received().size, { timeout: SETTLED_MS }).toBeGreaterThanOrEqual(expected);
  const createdEvents = receiver.receipts.filter(({ event }) => event.event === "prospect.created");
  const receivedIds = new Set(createdEvents.map(prospectIn));
  expect(created.every((id) => receivedIds.has(id))).toBe(true);
  expect(received().size).toBe(expected);
  await receiver.close();

  const companyId = dataOf(await rep.GET("/api/me")).company.id;
  const table = tableAt(db.endpoint, service.outputs.TableName);
  const looks = { again: 20, wait: () => new Promise((resolve) => setTimeout(resolve, 1_000)) };
  const found = await reconcile({ table, clock: systemClock }, companyId, looks);
  expect(found).toMatchObject({ matched: expected, delivered: expected, waiting: 0, faults: [] });
  const isFlushed = async () => (await readUnflushed(table, companyId)).head.version > 1;
  await vi.waitUntil(isFlushed, { timeout: SETTLED_MS });
  // During a flush, the check may see an entry both in the index and among the unflushed entries, so it is repeated.
  await vi.waitFor(async () => expect(await checkIndex(table, companyId)).toEqual([]), { timeout: SETTLED_MS });
});

test("a killed service keeps each acknowledged write and delivers each waiting event once", async () => {
  const start = restartable({ LOCAL_TIME_SCALE: "60" });
  const first = await start();
  // The receiver answers 503 until the kill, so that every delivery still waits then.
  let isUp = false;
  const receiver = await startReceiver((_, response) => response.writeHead(isUp ? 200 : 503).end());
  onTestFinished(receiver.close);
  const registrations = [{ event: "prospect.created" }];
  const admin = await first.clientOf("admin@acme.test");
  dataOf(await admin.POST("/api/webhooks", { body: { name: "Survivor", url: receiver.url, registrations } }), 201);

  const rep = await first.clientOf("rep@acme.test");
  const acknowledged: number[] = [];
  const workers = Array.from({ length: 8 }, async (_, worker) => {
    for (let i = 0; ; i++) {
      const made = await rep.POST("/api/prospects", { body: { name: `${worker}-${i}` } });
      acknowledged.push(dataOf(made, 201).id);
    }
  });
  const stopped = Promise.allSettled(workers);
  while (acknowledged.length < 80) await new Promise((resolve) => setTimeout(resolve, 10));
  await first.end("SIGKILL");
  await stopped;
  expect(new Set(acknowledged).size).toBe(acknowledged.length);

  isUp = true;
  receiver.receipts.length = 0;
  const reader = await (await start()).clientOf("rep@acme.test");
  for (const id of acknowledged) {
    expect(dataOf(await reader.GET("/api/prospects/{id}", at(id)))).toMatchObject({ id });
  }
  const missing = (): number[] => {
    const delivered = receiver.receipts.map(prospectIn);
    return acknowledged.filter((id) => !delivered.includes(id));
  };
  await expect.poll(missing, { timeout: 240_000 }).toEqual([]);
  const ids = receiver.receipts.map(({ event }) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
});
