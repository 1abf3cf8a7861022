/**
 * Each `GET /api/changes` of a device reads all entries of the company that are not yet flushed into the search index. Tests that the
 * entries of a company with devices are flushed before reading them costs more than two read units.
 */
import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { FLUSH_ENTRIES, flushStream } from "#shared/company-index/write/flush.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
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
  const handle = flushStream(() => ({ table, clock: { now: () => time.nowMs } }));
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

test("a company without devices is flushed at the usual number of entries, until its first device creates the data key", async () => {
  const [company, other] = [await newCompany(), await newCompany()];
  for (const { create } of [company, other]) for (let i = 1; i < FLUSH_ENTRIES; i++) await create();
  expect([await company.left(), await other.left()]).toEqual([FLUSH_ENTRIES - 1, FLUSH_ENTRIES - 1]);
  expect(await company.units()).toBeGreaterThan(2);
  await company.addDevice();
  await company.deliverDataKey();
  expect(await company.units()).toBeLessThanOrEqual(2);
  // The stream record of a data key makes the function look for this key in the table. The company `other` has no devices, so the table
  // contains no such key for it, and the function does not flush.
  await other.deliverDataKey();
  expect(await other.left()).toBe(FLUSH_ENTRIES - 1);
});

test("a function asks again after a minute whether a company has devices", async () => {
  const company = await newCompany();
  for (let i = 1; i < 60; i++) await company.create();
  await company.addDevice();
  await company.create();
  expect(await company.left()).toBe(60);
  company.time.nowMs += 60_000;
  await company.create();
  expect(await company.left()).toBe(0);
});
