/** Tests that a warm function reads the stored data of an event only once, and that its cache of this data is bounded. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { Table } from "#shared/db/table.ts";
import { keepEventData, readEventData } from "#shared/webhooks/event-data.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { START } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();

const COMPANY = 1;

/** Simulates a newly started function, whose cache is empty. `reads` returns how often the function has read the table. */
function warm(): { table: Table; reads: () => number } {
  let reads = 0;
  const batchGet: Table["batchGet"] = (keys, how) => {
    reads++;
    return db.direct.batchGet(keys, how);
  };
  return { table: { ...db.direct, batchGet }, reads: () => reads };
}

async function kept(text: string): Promise<string> {
  const id = randomUUID();
  await keepEventData(db.direct, { companyId: COMPANY, id, createdAt: iso(START) }, text, START);
  return id;
}

test("ten concurrent requests and a later one share one read", async () => {
  const { table, reads } = warm();
  const id = await kept('{"a":"ä\u2028"}');
  const read = async () => (await readEventData(table, COMPANY, [id])).get(id);
  expect(new Set(await Promise.all(Array.from({ length: 10 }, read)))).toEqual(new Set(['{"a":"ä\u2028"}']));
  await read();
  expect(reads()).toBe(1);
});

test("a repeated write with other data changes nothing and returns the length of the stored data", async () => {
  const id = await kept('{"a":1}');
  const again = { companyId: COMPANY, id, createdAt: iso(START) };
  expect(await keepEventData(db.direct, again, '{"a":22222}', START)).toBe(7);
  expect((await readEventData(db.direct, COMPANY, [id])).get(id)).toBe('{"a":1}');
});

test("a full cache keeps the newest entries and reads evicted ones again", async () => {
  const { table, reads } = warm();
  const ids: string[] = [];
  for (let i = 0; i < 80; i++) ids.push(await kept(JSON.stringify(`${i} ${"x".repeat(250_000)}`)));
  for (const id of ids) await readEventData(table, COMPANY, [id]);
  expect(reads()).toBe(80);
  await readEventData(table, COMPANY, ids.slice(-50));
  expect(reads()).toBe(80);
  const [first = ""] = ids;
  expect((await readEventData(table, COMPANY, [first])).get(first)).toMatch(/^"0 x/);
  expect(reads()).toBe(81);
});

test("a missing row is an error each time, and is found once it exists", async () => {
  const { table } = warm();
  const id = randomUUID();
  for (let i = 0; i < 2; i++) await expect(readEventData(table, COMPANY, [id])).rejects.toThrow("is gone");
  await keepEventData(db.direct, { companyId: COMPANY, id, createdAt: iso(START) }, "{}", START);
  expect((await readEventData(table, COMPANY, [id])).get(id)).toBe("{}");
});
