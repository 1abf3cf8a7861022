/**
 * Tests the whole service while DynamoDB throttles calls, reports conflicts and loses replies. The service must keep every accepted
 * write, and must deliver every event once.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { systemClock } from "#shared/clock.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { conflict, pass, throttle } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { startReceiver } from "../harness/receiver.ts";
import { sized } from "../harness/tier.ts";

/** Number of writes. They are enough to start a flush, which moves new entries into the company's search index. */
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

const Identified = z.object({ id: z.number() });
const Received = z.object({ data: z.object({ prospect: Identified }) });

async function call(token: string, method: string, path: string, body?: unknown, key?: string) {
  const answer = await fetch(`${service.url}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      ...(key !== undefined && { "Idempotency-Key": key }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: await answer.json() };
}

test(`${WRITES} writes under faults are all kept, delivered once and indexed`, { tags: "sized" }, async () => {
  const token = (await service.tokenOf("rep@acme.test")) ?? "";
  const admin = (await service.tokenOf("admin@acme.test")) ?? "";
  const receiver = await startReceiver();
  const registrations = [{ event: "prospect.created" }, { event: "prospect.updated" }];
  const hook = await call(admin, "POST", "/api/webhooks", { name: "Chaos", url: receiver.url, registrations });
  expect(hook.status).toBe(201);

  let state = 7;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
  db.plan((operation) => {
    if (!/^(Get|Put|Update|Delete|Query|Transact|Batch)/.test(operation)) return pass;
    const dice = random();
    if (dice < 0.15) return throttle;
    if (dice < 0.25) return { kind: "lose reply" };
    return dice < 0.3 && operation === "TransactWriteItems" ? conflict : pass;
  });

  async function accepted(method: string, path: string, body: unknown, key?: string): Promise<unknown> {
    for (let attempt = 0; attempt < 200; attempt++) {
      const answer = await call(token, method, path, body, key);
      if (answer.status < 300) return answer.body;
      expect([409, 503], JSON.stringify(answer.body)).toContain(answer.status);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`${method} ${path} was never accepted`);
  }
  const created: number[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < WRITES) {
        const n = next++;
        const made = await accepted("POST", "/api/prospects", { name: `chaos ${n}` }, `chaos-${n}`);
        const { id } = z.parse(Identified, made);
        created.push(id);
        if (n % 3 === 0) await accepted("PATCH", `/api/prospects/${id}`, { phoneNumber: String(n) });
      }
    }),
  );
  db.plan(() => pass);

  const Page = z.object({
    total: z.number(),
    items: z.array(z.object({ id: z.number(), name: z.nullable(z.string()) })),
  });
  const items: z.infer<typeof Page>["items"] = [];
  for (let page = 1, total = 1; items.length < total; page++) {
    const answer = z.parse(Page, (await call(token, "GET", `/api/prospects?pageSize=500&page=${page}`)).body);
    items.push(...answer.items);
    total = answer.total;
  }
  const names = items.map(({ name }) => name).filter((name) => name?.startsWith("chaos "));
  expect(new Set(names).size).toBe(WRITES);
  expect(names).toHaveLength(WRITES);
  expect(new Set(created).size).toBe(WRITES);

  const deadline = Date.now() + SETTLED_MS;
  const expected = WRITES + Math.ceil(WRITES / 3);
  const received = () => new Set(receiver.receipts.map(({ event }) => event.id));
  while (received().size < expected) {
    if (Date.now() > deadline) throw new Error(`${received().size} of ${expected} events arrived`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const createdEvents = receiver.receipts.filter(({ event }) => event.event === "prospect.created");
  const receivedIds = new Set(createdEvents.map(({ event }) => z.parse(Received, event).data.prospect.id));
  expect(created.every((id) => receivedIds.has(id))).toBe(true);
  expect(received().size).toBe(expected);
  await receiver.close();
  await expectDelivered(z.parse(Me, (await call(token, "GET", "/api/me")).body).company.id, expected);
});

const Me = z.object({ company: Identified });

function serviceTable(): Table {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: db.endpoint, region: "us-east-1", credentials });
  return openTable(service.outputs.TableName, client);
}

/**
 * Expects that reconciliation counts `expected` deliveries, that all of them are delivered, and that it finds no fault. Also checks the
 * search index.
 */
async function expectDelivered(companyId: number, expected: number): Promise<void> {
  const table = serviceTable();
  const looks = { again: 20, wait: () => new Promise((resolve) => setTimeout(resolve, 1_000)) };
  const found = await reconcile({ table, clock: systemClock }, companyId, looks);
  expect(found).toMatchObject({ matched: expected, delivered: expected, waiting: 0, faults: [] });
  await expectIndexed(companyId);
}

/** Waits until a flush has changed the company's search index. Then expects that the index agrees with the rows of prospects and notes. */
async function expectIndexed(companyId: number): Promise<void> {
  const table = serviceTable();
  const flushed = async (): Promise<number> => (await readUnflushed(table, companyId)).head.version;
  await vi.waitUntil(async () => (await flushed()) > 1, { timeout: SETTLED_MS });
  // The check is repeated, because it may run during a flush. While the flush moves an entry, the check may see the entry both in the index
  // and among the unflushed entries.
  await vi.waitFor(async () => expect(await checkIndex(table, companyId)).toEqual([]), { timeout: SETTLED_MS });
}
