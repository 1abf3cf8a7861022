/**
 * Each list and each `GET /api/changes` reads all entries of the company that are not yet flushed into the search index. Tests that in a
 * company with devices, the entries are flushed before reading them costs more than two read units. In other companies, they are flushed
 * once the last flush is a minute ago.
 */
import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { moveHead } from "#shared/company-index/manifest.ts";
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { flushStream, sweepFlushRequests } from "#shared/company-index/write/flush-stream.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import { DATA_KEY_TYPE, secretKeys } from "#shared/db/webhook-keys.ts";
import { createProspect } from "#shared/prospects/write.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newStage } from "../sync/stage.ts";

const db = faultyDynamoDb();

async function newCompany() {
  const { context, owner } = await newStage(db);
  const { companyId } = owner;
  const { table } = context;
  const dataKey = { ...secretKeys.cursorDataKey(companyId), type: DATA_KEY_TYPE };
  const time = { nowMs: Date.UTC(2026, 5, 1) };
  const clock = { now: () => time.nowMs };
  let isLosing = false;
  const transact: Table["transact"] = async (writes) => {
    const { head } = await readUnflushed(table, companyId);
    if (isLosing) await moveHead(table, companyId, head, { ...head, version: head.version + 1 });
    await table.transact(writes);
  };
  const handle = flushStream(() => ({ table: { ...table, transact }, clock }));
  const seen = new Set<string>();
  async function deliver(items: readonly Item[]): Promise<void> {
    const Records = items.map((item) => {
      const { pk, sk } = item;
      return { dynamodb: { Keys: marshall({ pk, sk }), NewImage: marshall(item), SequenceNumber: "1" } };
    });
    // The type cast is safe: the records contain only some attributes of a stream record, but these are all that the function reads.
    expect(await handle({ Records } as never)).toEqual({ batchItemFailures: [] });
  }
  return {
    time,
    /** Creates a prospect, and passes the stream records of its new entries to the function. */
    async create(): Promise<void> {
      const more = { phoneNumber: "+1 512 555 0134", emailAddress: "maria.garcia@mail.test", lat: 30.27, lng: -97.74 };
      await createProspect(context, owner, { name: "Maria Garcia", ...more });
      const entries: Item[] = [];
      for await (const item of table.query(keys.index(companyId))) {
        if (item.type !== "delta" || seen.has(String(item.sk))) continue;
        seen.add(String(item.sk));
        entries.push(item);
      }
      await deliver(entries);
    },
    async addDevice(): Promise<void> {
      await table.write({ put: dataKey });
    },
    deliverDataKey: () => deliver([dataKey]),
    /** Passes the stream record of the company's flush request to the function. Returns the read units of the function. */
    async deliverRequest(): Promise<number> {
      const request = (await table.get(keys.flushRequest(companyId))) ?? expect.fail("no request");
      return (await metered(() => deliver([request]))).usage.readUnits;
    },
    requestedAt: async () => (await table.get(keys.flushRequest(companyId)))?.dueAt,
    /** During `work`, each flush loses against another process that changes the index first. */
    async lose<T>(work: () => Promise<T>): Promise<T> {
      isLosing = true;
      return work().finally(() => {
        isLosing = false;
      });
    },
    /** Releases the requests of all companies whose time has come, and returns their number. */
    sweep: (): Promise<number> => sweepFlushRequests({ table, clock }),
    left: async (): Promise<number> => (await readUnflushed(table, companyId)).keys.length,
    units: async (): Promise<number> => (await metered(() => readUnflushed(table, companyId))).usage.readUnits,
  };
}

test("entries that cost more than two read units are flushed if the company has devices", async () => {
  const company = await newCompany();
  await company.addDevice();
  let most = 0;
  for (let i = 1; i < FLUSH_ENTRIES; i++) {
    await company.create();
    expect(await company.units()).toBeLessThanOrEqual(2);
    most = Math.max(most, await company.left());
  }
  expect(most).toBeGreaterThan(30);
  expect(most).toBeLessThan(FLUSH_ENTRIES - 1);
});

/** Creates prospects until the entries are flushed for the first time, and then `COUNT` more within the same minute. */
const COUNT = 52;
async function newBusyCompany() {
  const company = await newCompany();
  do await company.create();
  while ((await company.left()) > 0);
  for (let i = 0; i < COUNT; i++) await company.create();
  return company;
}

test("in a company without devices, large entries are flushed when a minute has passed since the last flush", async () => {
  const company = await newBusyCompany();
  expect(await company.left()).toBe(COUNT);
  expect(await company.units()).toBeGreaterThan(2);
  company.time.nowMs += 59_999;
  await company.create();
  expect(await company.left()).toBe(COUNT + 1);
  company.time.nowMs++;
  await company.create();
  expect(await company.left()).toBe(0);
});

test("64 entries are flushed at once, even if the last flush was less than a minute ago", async () => {
  const company = await newBusyCompany();
  for (let i = COUNT; i < FLUSH_ENTRIES; i++) await company.create();
  expect(await company.left()).toBe(0);
});

test("if a company writes nothing more, its large entries are flushed by a request", async () => {
  const company = await newBusyCompany();
  company.time.nowMs += 59_999;
  await company.sweep();
  // The time of the request has not come, so its stream record costs nothing.
  expect(await company.deliverRequest()).toBe(0);
  expect(await company.left()).toBe(COUNT);
  company.time.nowMs++;
  await company.sweep();
  await company.deliverRequest();
  expect(await company.left()).toBe(0);
  expect(await company.units()).toBeLessThanOrEqual(2);
  expect(await company.sweep()).toBe(0);
});

test("a request whose time has come makes a new request if the clock of the flush function is behind", async () => {
  const company = await newBusyCompany();
  company.time.nowMs += 60_000;
  await company.sweep();
  company.time.nowMs -= 100;
  await company.deliverRequest();
  expect(await company.left()).toBe(COUNT);
  company.time.nowMs += 100;
  expect(await company.sweep()).toBeGreaterThan(0);
  await company.deliverRequest();
  expect(await company.left()).toBe(0);
});

test("a request makes a new request if another process changes the index during its flush", async () => {
  const company = await newBusyCompany();
  company.time.nowMs += 60_000;
  await company.sweep();
  await company.lose(() => company.deliverRequest());
  expect(await company.left()).toBe(COUNT);
  expect(await company.sweep()).toBeGreaterThan(0);
  await company.deliverRequest();
  expect(await company.left()).toBe(0);
});

test("a busy company makes at most one request in a minute", async () => {
  const company = await newCompany();
  const requests = new Set<unknown>();
  for (let i = 0; i < 4 * FLUSH_ENTRIES; i++) {
    company.time.nowMs += 10;
    await company.create();
    requests.add(await company.requestedAt());
  }
  expect(requests.size).toBeLessThanOrEqual(2);
});

test("a request does nothing if another flush has moved its entries, and the next entries make a new request", async () => {
  const company = await newBusyCompany();
  for (let i = COUNT; i < FLUSH_ENTRIES; i++) await company.create();
  company.time.nowMs += 60_000;
  await company.create();
  await company.sweep();
  await company.deliverRequest();
  expect(await company.left()).toBe(1);
  for (let i = 1; i < COUNT; i++) await company.create();
  // This flush is the first one for more than a minute.
  expect(await company.left()).toBeLessThan(COUNT);
  while ((await company.left()) < COUNT) await company.create();
  company.time.nowMs += 60_000;
  await company.sweep();
  await company.deliverRequest();
  expect(await company.left()).toBe(0);
});

test("the first device of a company creates the data key, which starts a flush", async () => {
  const [company, other] = [await newBusyCompany(), await newBusyCompany()];
  await company.addDevice();
  await company.deliverDataKey();
  expect(await company.units()).toBeLessThanOrEqual(2);
  // The stream record of a data key makes the function look for this key in the table. The company `other` has no devices, so the table
  // contains no such key for it, and the function does not flush.
  await other.deliverDataKey();
  expect(await other.left()).toBe(COUNT);
});
