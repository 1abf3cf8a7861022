/** Tests that the sweeper flushes entries that are older than a minute, because each list and each `GET /api/changes` reads all of them. */
import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { moveHead } from "#shared/company-index/manifest.ts";
import { FLUSH_ENTRIES, OLD_MS } from "#shared/company-index/write/flush.ts";
import { flushStream, sweepFlushRequests } from "#shared/company-index/write/flush-stream.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createProspect } from "../harness/verbs.ts";
import { newStage } from "../sync/stage.ts";

const db = faultyDynamoDb();

async function newCompany() {
  const { context, owner } = await newStage(db);
  const { companyId } = owner;
  const { table } = context;
  const time = { nowMs: Date.UTC(2026, 5, 1) };
  const clock = { now: () => time.nowMs };
  const newFunction = (transact: Table["transact"] = table.transact) =>
    flushStream(() => ({ table: { ...table, transact }, clock }));
  const handle = newFunction();
  const seen = new Set<string>();
  /** Passes a stream record of each item to the flush function. Returns the number of records that the function reports as failed. */
  async function deliver(items: readonly Item[], to = handle): Promise<number> {
    const Records = items.map((item) => {
      const { pk, sk } = item;
      return { dynamodb: { Keys: marshall({ pk, sk }), NewImage: marshall(item), SequenceNumber: "1" } };
    });
    // The type cast is safe: the records contain only some attributes of a stream record, but these are all that the function reads.
    const { batchItemFailures } = await to({ Records } as never);
    return batchItemFailures.length;
  }
  const request = () => table.get(keys.flushRequest(companyId));
  return {
    time,
    companyId,
    newFunction,
    deliver,
    request,
    /** Creates prospects, one after the other, and passes the stream record of each new delta entry to the flush function. */
    async create(count = 1, to = handle): Promise<void> {
      for (let i = 0; i < count; i++) {
        await createProspect(context, owner, { name: "Maria Garcia" });
        const items = await Array.fromAsync(table.query(keys.index(companyId)));
        const entries = items.filter(({ type, sk }) => type === "delta" && !seen.has(String(sk)));
        for (const { sk } of entries) seen.add(String(sk));
        await deliver(entries, to);
      }
    },
    /** Runs the sweeper. If this has removed the due time of the company's flush request, passes the row of the request to the function. */
    async sweep(to = handle): Promise<void> {
      await sweepFlushRequests({ table, clock });
      const row = await request();
      if (row !== undefined && row.dueAt === undefined) await deliver([row], to);
    },
    async sweepAfter(ms: number, times = 1): Promise<void> {
      for (let sweeps = 0; sweeps < times; sweeps++) {
        time.nowMs += ms;
        await this.sweep();
      }
    },
    left: async (): Promise<number> => (await readUnflushed(table, companyId)).keys.length,
  };
}

test.each([1, 10, FLUSH_ENTRIES - 1])("the sweeper flushes a company that stops after %s entries", async (count) => {
  const company = await newCompany();
  await company.create(count);
  expect(await company.left()).toBe(count);
  await company.sweepAfter(OLD_MS, 2);
  expect(await company.left()).toBe(0);
  await company.sweepAfter(OLD_MS);
  expect(await company.request()).not.toHaveProperty("dueAt");
});

test("a company whose entries are a second younger than a minute is not flushed", async () => {
  const company = await newCompany();
  await company.create(3);
  await company.sweepAfter(OLD_MS - 1_000);
  expect(await company.left()).toBe(3);
});

test("a request for a flush costs two write units, its release costs two, and further entries of the same minute cost none", async () => {
  const company = await newCompany();
  await company.create();
  await company.sweepAfter(OLD_MS);
  const first = await metered(() => company.create());
  const next = await metered(() => company.create());
  expect(first.usage.writeUnits - next.usage.writeUnits).toBe(2);
  company.time.nowMs += OLD_MS;
  const clock = { now: () => company.time.nowMs };
  const { result, usage } = await metered(() => sweepFlushRequests({ table: db.direct, clock }));
  expect(usage.writeUnits).toBe(2 * result);
});

test("a sweep releases the 50 oldest requests, and two concurrent sweeps release each of the others once", async () => {
  const at = Date.UTC(2020, 0, 1);
  const ids = Array.from({ length: 70 }, (_, i) => 900_000 + ((i * 37) % 70));
  const rows = ids.map((id, i) => ({
    ...keys.flushRequest(id),
    ...{ type: "flushRequest", dueShard: keys.flushShard, dueAt: iso(at + i * 1_000) },
  }));
  await db.direct.batchPut(rows.toReversed());
  const sweep = () => sweepFlushRequests({ table: db.direct, clock: { now: () => at + OLD_MS * 2 } });
  const waiting = async () => {
    const items = await Promise.all(ids.map((id) => db.direct.get(keys.flushRequest(id))));
    return ids.filter((_, i) => items[i]?.dueAt !== undefined);
  };
  expect(await sweep()).toBe(50);
  expect(await waiting()).toEqual(ids.slice(50));
  const [one, two] = await Promise.all([sweep(), sweep()]);
  expect(one + two).toBe(20);
  expect(await waiting()).toEqual([]);
});

test("the stream record of a released request may arrive twice, and long after its entries were flushed", async () => {
  const company = await newCompany();
  await company.create(5);
  await company.sweepAfter(OLD_MS);
  const released = (await company.request()) ?? expect.fail("no request");
  await company.create(2);
  for (let i = 0; i < 2; i++) expect(await company.deliver([released])).toBe(0);
  expect(await company.left()).toBe(2);
  await company.sweepAfter(OLD_MS, 2);
  expect(await company.left()).toBe(0);
});

test("a flush that fails is reported, stops no other company, and succeeds when its record is repeated", async () => {
  const [company, other] = [await newCompany(), await newCompany()];
  await company.create(5);
  await other.create(5);
  for (const one of [company, other]) one.time.nowMs += OLD_MS;
  await sweepFlushRequests({ table: db.direct, clock: { now: () => company.time.nowMs } });
  const rows = [(await company.request()) ?? expect.fail(), (await other.request()) ?? expect.fail()];
  const failing = company.newFunction(() => Promise.reject(new Error("the table fails")));
  expect(await company.deliver(rows.slice(0, 1), failing)).toBe(1);
  expect(await company.left()).toBe(5);
  expect(await other.deliver(rows)).toBe(0);
  expect([await company.left(), await other.left()]).toEqual([0, 0]);
});

test("if another process changes the index during the flush, or the clock of the function is behind, there is a new request", async () => {
  const company = await newCompany();
  await company.create(5);
  company.time.nowMs += OLD_MS;
  const { companyId } = company;
  const losing = company.newFunction(async (writes) => {
    const { head } = await readUnflushed(db.direct, companyId);
    await moveHead(db.direct, companyId, head, { ...head, version: head.version + 1 });
    await db.direct.transact(writes);
  });
  await company.sweep(losing);
  expect(await company.left()).toBe(5);
  await company.sweepAfter(OLD_MS, 2);
  expect(await company.left()).toBe(0);
});

test("entries are flushed although another instance of the function has made the request for earlier entries", async () => {
  const company = await newCompany();
  await company.create(1);
  company.time.nowMs += OLD_MS - 10_000;
  const second = company.newFunction();
  await company.create(1, second);
  await company.sweepAfter(10_000);
  expect(await company.left()).toBe(0);
  company.time.nowMs += 10_000;
  await company.create(1, second);
  expect(await company.left()).toBe(1);
  await company.sweepAfter(OLD_MS, 2);
  expect(await company.left()).toBe(0);
});

test("a busy company makes at most one request in a minute, and is not flushed with few entries", async () => {
  const company = await newCompany();
  await company.create(FLUSH_ENTRIES);
  const requests = new Set<unknown>();
  const left: number[] = [];
  for (let minute = 0; minute < 3; minute++) {
    for (let second = 0; second < 60; second += 2) {
      company.time.nowMs += 2_000;
      await company.create(2);
      requests.add((await company.request())?.dueAt);
    }
    const before = await company.left();
    await company.sweep();
    left.push(before - (await company.left()));
  }
  requests.delete(undefined);
  expect(requests.size).toBeLessThanOrEqual(4);
  expect(left.filter((moved) => moved > 0).length).toBeLessThanOrEqual(1);
});
