/**
 * Tests that the service keeps every accepted write and delivers every event once, while DynamoDB throttles calls, reports conflicts and
 * loses replies.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { systemClock } from "#shared/clock.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { type ApiClient, apiClient } from "../../docs/client/client.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { conflict, pass, tableAt, throttle } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, Identified } from "../harness/shapes.ts";
import { sized } from "../harness/tier.ts";

/** This number of writes starts a flush. */
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
  const receivedIds = new Set(createdEvents.map(({ event }) => z.parse(Received, event).data.prospect.id));
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
