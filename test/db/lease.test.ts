/** Tests the lease on a row: only one function holds it, and a function that has lost it changes nothing. */
import { beforeEach, expect, test } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { equals, exists } from "#shared/db/expression.ts";
import { acquire, type Held, LeaseLost, whileHeld } from "#shared/db/lease.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";

const db = faultyDynamoDb();
const START = Date.parse("2030-01-01T00:00:00.000Z");
const MS = 60_000;
const now = { ms: START };
const source = () => ({ table: db.sdk, clock: { now: () => now.ms } });
const Row = z.looseObject({ state: z.optional(z.string()) });
let number = 0;
const fixed = { schema: Row, attribute: "until", ms: MS, earlyMs: 1_000 };
const newLease = () => ({ key: { pk: "leases", sk: String(number++) }, ...fixed });
type Lease = ReturnType<typeof newLease>;
const rowOf = async ({ key }: Lease) => db.direct.get(key);
async function held(lease: Lease): Promise<Held<z.infer<typeof Row>>> {
  const found = await acquire(source(), lease, { set: { state: "open" } });
  if (found === undefined) throw new Error("the lease is not free");
  return found;
}
beforeEach(() => {
  now.ms = START;
});

test("a lease is free if its row has no lease attribute, or if at most the tolerated difference of clocks is left until its end", async () => {
  const lease = newLease();
  const first = await held(lease);
  expect([first.until, first.row]).toEqual([iso(START + MS), expect.objectContaining({ state: "open" })]);
  now.ms += MS - 1_001;
  expect(await acquire(source(), lease)).toBeUndefined();
  now.ms++;
  expect((await acquire(source(), lease))?.until).toBe(iso(now.ms + MS));
});

test("of functions that try at the same time, one acquires the lease", async () => {
  const lease = newLease();
  const all = await Promise.all(Array.from({ length: 8 }, () => acquire(source(), lease)));
  expect(all.filter((one) => one !== undefined)).toHaveLength(1);
});

test("nobody acquires the lease of a row that is not open, or of an open row that somebody holds", async () => {
  const lease = { ...newLease(), isOpen: equals("state", "open") };
  expect(await acquire(source(), lease)).toBeUndefined();
  await db.direct.batchPut([{ ...lease.key, state: "closed" }]);
  expect(await acquire(source(), lease)).toBeUndefined();
  await db.direct.batchPut([{ ...lease.key, state: "open" }]);
  expect(await acquire(source(), lease)).toBeDefined();
  expect(await acquire(source(), lease), "somebody holds it").toBeUndefined();
});

test("renewing and releasing write the given change together with the new end of the lease, and ending removes the lease", async () => {
  const lease = newLease();
  const own = await held(lease);
  now.ms += 7;
  await own.renew({ set: { position: 3 } });
  expect([own.until, own.row]).toEqual([iso(START + 7 + MS), expect.objectContaining({ position: 3 })]);
  await own.release(now.ms + 9_000, { remove: ["position"] });
  expect(await rowOf(lease)).toMatchObject({ until: iso(now.ms + 9_000) });
  expect(await acquire(source(), lease)).toBeUndefined();
  now.ms += 9_000;
  const next = await held(lease);
  expect(await next.end({ set: { state: "done" } })).toBe(true);
  const { writeId: _, ...row } = (await rowOf(lease)) ?? {};
  expect(row).toEqual({ ...lease.key, state: "done" });
});

test("ending a lease keeps the lease if the given condition fails", async () => {
  const lease = newLease();
  const own = await held(lease);
  expect(await own.end({ set: { state: "done" } }, exists("empty"))).toBe(false);
  await own.renew();
  expect(await rowOf(lease)).toMatchObject({ state: "open", until: own.until });
});

test("each write of a lost lease throws LeaseLost and changes nothing, and any other error is passed on", async () => {
  const lease = newLease();
  const lost = await held(lease);
  now.ms += MS;
  await held(lease);
  const row = await rowOf(lease);
  const writes = [
    () => lost.renew({ set: { state: "lost" } }),
    () => lost.release(0),
    () => lost.end(),
    () => lost.end({}, exists("pk")),
  ];
  for (const write of writes) await expect(write()).rejects.toBeInstanceOf(LeaseLost);
  await expect(db.sdk.write({ update: lease.key, change: {}, when: lost.isHeld })).rejects.toThrow("condition failed");
  expect(await rowOf(lease)).toEqual(row);
  const table = { ...db.sdk, write: () => Promise.reject(new Error("broken")) };
  await expect(acquire({ ...source(), table }, lease)).rejects.toThrow("broken");
});

test("work that fails releases the lease, so that it can be repeated, and work that has lost the lease ends without an error", async () => {
  const lease = newLease();
  const failing = () => Promise.reject(new Error("the work fails"));
  await expect(whileHeld(source(), lease, {}, failing)).rejects.toThrow("the work fails");
  let isCalled = false;
  await whileHeld(source(), lease, { set: { state: "open" } }, async (own) => {
    isCalled = true;
    expect(own.row).toMatchObject({ state: "open" });
    await whileHeld(source(), lease, {}, failing);
    now.ms += MS;
    await held(lease);
    await own.renew();
  });
  expect(isCalled).toBe(true);
  expect(await rowOf(lease)).toMatchObject({ until: iso(now.ms + MS) });
});
