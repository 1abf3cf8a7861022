/**
 * Tests the data of events: a warm function reads it only once, its cache is bounded, and the body of a delivery does not change if a
 * repeated publication reads newer rows.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import { keepEventData, readEventData } from "#shared/webhooks/event-data.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createAppointment, createProspect, updateAppointment, updateProspect } from "../harness/verbs.ts";
import { START } from "./fixtures.ts";
import { newPipeline, publishIn } from "./pipeline.ts";
import { deliveries } from "./stored-deliveries.ts";

const db = faultyDynamoDb();

const COMPANY = 1;

/** Simulates a newly started function. `reads` returns how often it has read the table. */
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

test("neither the first nor a repeated publication of an event contains a later change of an appointment", async () => {
  const at = await newPipeline(db, "prospect.updated");
  const { api, caller, companyId, context } = at;
  const hour = (n: number): string => iso(START + n * 3_600_000);
  const { id } = await createProspect(api, caller, { name: "Ada" });
  const appointment = await createAppointment(api, caller, id, { title: "first", startAt: hour(2) });
  const before = await db.direct.get(keys.prospect(companyId, id));
  at.clock += 60_000;
  await updateProspect(api, caller, id, { name: "Bea" });
  const change = { before, after: await db.direct.get(keys.prospect(companyId, id)) };
  at.clock += 60_000;
  // If the body were made from newer rows, it would show this appointment, which begins before the first one.
  await createAppointment(api, caller, id, { title: "second", startAt: hour(1) });
  const reads = batchReads(context);
  await Promise.all([reads.dictionary(companyId), reads.subscriptions(companyId)]);
  const { usage } = await metered(() => publishChanges(context, reads, [change]));
  // One request writes the expected delivery, and one the delivery. The changed row contains all data for the body.
  expect(usage.requests).toBe(2);
  const [delivery, ...more] = await deliveries(at);
  expect(more).toEqual([]);
  expect(JSON.parse(delivery?.body ?? "")).toMatchObject({
    data: { prospect: { appointments: [{ title: "first" }] } },
  });

  await updateAppointment(api, caller, appointment.id, { title: "changed" });
  await publishIn(context, change);
  expect(await deliveries(at)).toEqual([delivery]);
});
