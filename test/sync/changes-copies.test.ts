/**
 * Tests that `GET /api/changes` shows changed prospects from the copies in the change log, and that it reads their rows if a copy is
 * missing or might be outdated.
 */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import * as changeLogKeys from "#shared/db/change-log-keys.ts";
import type { Key } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { createAppointment } from "#shared/prospects/appointments.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { createProspect, deleteProspect, updateProspect } from "#shared/prospects/write.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import type { ChangeItem, ChangeType } from "#shared/sync/changes/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { forgetRows } from "../harness/forget-rows.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
const COUNT = 100;
/** The tests change every fifth prospect. The ids are then so far apart that one Query for several rows costs more than single reads. */
const APART = 5;

/** Creates a company with `COUNT` prospects. Its owner and a rep have read all records. */
async function newCompany() {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail(), other = expect.fail()] = reps;
  const { companyId } = owner;
  const { table } = context;
  const ids: number[] = [];
  for (let i = 0; i < COUNT; i++) {
    const contact = { name: `Maria Garcia ${i}`, phoneNumber: "+1 512 555 0134", emailAddress: `maria${i}@mail.test` };
    const address = { address1: `${i} Maple Street`, city: "Denver", state: "CO", zip: "80202" };
    const made = await createProspect(context, owner, { ...contact, address, assignedToUserId: rep.userId });
    ids.push(made.id);
  }
  const all = async () => flush(context, companyId, { least: 1, settleMs: 0 });
  await all();
  const cursors = new Map<number, string>();
  async function pull(caller: Caller = owner, limit = 500, types: ChangeType[] = ["prospects"]) {
    forgetRows(table, companyId);
    const cursor = cursors.get(caller.userId);
    const { result, usage } = await metered(() => readChanges(context, caller, { limit, types, cursor }));
    cursors.set(caller.userId, result.cursor);
    return { ...result, units: usage.readUnits, rounds: usage.rounds };
  }
  for (const caller of [owner, rep]) while ((await pull(caller)).hasMore);
  async function copyRows() {
    const rows: Key[] = [];
    const range = changeLogKeys.copies(companyId, 0, Number.MAX_SAFE_INTEGER);
    for await (const { sk } of table.query(range)) rows.push({ pk: range.pk, sk: String(sk) });
    return rows;
  }
  async function listed(caller: Caller = owner): Promise<Map<number, Prospect>> {
    const { items } = await listProspects(context, caller, { page: 1, pageSize: COUNT });
    return new Map(items.map((item) => [item.id, Prospect.parse(item)]));
  }
  const scattered = ids.filter((_, i) => i % APART === 0);
  async function change(some: readonly number[], fields: Parameters<typeof updateProspect>[3]): Promise<void> {
    for (const id of some) await updateProspect(context, owner, id, fields);
  }
  return { context, table, owner, rep, other, ids, scattered, flush: all, pull, copyRows, listed, change };
}

const upserts = (items: readonly ChangeItem[]): Map<number, unknown> =>
  new Map(items.flatMap((item) => (item.op === "upsert" ? [[item.id, item.data] as const] : [])));

test.each([
  { when: "that are not flushed", isFlushed: false, units: 3.5, rounds: 1 },
  { when: "after a flush", isFlushed: true, units: 2.5, rounds: 2 },
])("a pull of scattered changes $when reads no rows of prospects", async ({ isFlushed, units, rounds }) => {
  const company = await newCompany();
  await company.change(company.scattered, { emailAddress: "new@mail.test" });
  if (isFlushed) await company.flush();
  const { items, ...cost } = await company.pull();
  const listed = await company.listed();
  expect(upserts(items)).toEqual(new Map(company.scattered.map((id) => [id, listed.get(id)])));
  expect(cost).toMatchObject({ hasMore: false, rounds });
  // Without copies, the request would read the rows of the prospects, which cost half a unit each.
  expect(cost.units).toBeLessThanOrEqual(units);
  expect(cost.units).toBeLessThanOrEqual(2 + company.scattered.length / 4);
});

test("if the copies are not visible, the rows of the prospects are read", async () => {
  const company = await newCompany();
  await company.change(company.scattered, { name: "Eve" });
  await company.flush();
  const rows = await company.copyRows();
  expect(rows).not.toEqual([]);
  await company.table.batchRemove(rows);
  const { items } = await company.pull();
  const listed = await company.listed();
  expect(upserts(items)).toEqual(new Map(company.scattered.map((id) => [id, listed.get(id)])));
});

test("one change of a flush is read from its row, because that costs less than the copies of the flush", async () => {
  const company = await newCompany();
  const [mine = expect.fail(), ...others] = company.ids;
  await company.change([mine], { assignedToUserId: company.other.userId });
  await company.flush();
  await company.pull();
  while ((await company.pull(company.other)).hasMore);
  await company.change([mine, ...others], { name: "Eve" });
  await company.flush();
  const { items, units } = await company.pull(company.other);
  expect(items.map(({ id }) => id)).toEqual([mine]);
  expect(units).toBe(2);
});

test("a page that ends before the end of the log shows the present state of its prospects", async () => {
  const company = await newCompany();
  for (const name of ["Ann", "Eve"]) {
    await company.change(company.scattered, { name });
    await company.flush();
  }
  await company.change(company.scattered.slice(0, 1), { name: "Zoe" });
  for (let isMore = true, pages = 0; isMore; pages++) {
    const { items, hasMore } = await company.pull(company.owner, 10);
    const listed = await company.listed();
    for (const [id, data] of upserts(items)) expect(data).toEqual(listed.get(id));
    expect(pages).toBeLessThan(20);
    isMore = hasMore;
  }
});

test.each([true, false])("a prospect that a rep has lost is removed (flushed: %s)", async (isFlushed) => {
  const company = await newCompany();
  await company.change(company.scattered, { assignedToUserId: company.other.userId });
  if (isFlushed) await company.flush();
  const { items } = await company.pull(company.rep);
  expect(new Set(items.map(({ id }) => id))).toEqual(new Set(company.scattered));
  for (const item of items) expect(item).toMatchObject({ op: "remove", reason: "hidden" });
});

test.each([true, false])("a prospect shows its next appointment (flushed: %s)", async (isFlushed) => {
  const company = await newCompany();
  const [id = expect.fail()] = company.scattered;
  await createAppointment(company.context, company.owner, id, { title: "Visit", startAt: "2030-01-01T00:00:00.000Z" });
  await company.change(company.scattered, { name: "Eve" });
  if (isFlushed) await company.flush();
  const { items } = await company.pull();
  expect(upserts(items).get(id)).toMatchObject({ name: "Eve", appointments: [{ title: "Visit" }] });
  expect(upserts(items)).toEqual(
    await company.listed().then((all) => new Map(company.scattered.map((own) => [own, all.get(own)]))),
  );
});

test("after a flush of many entries, the copies are read at the same time as the changes", async () => {
  const company = await newCompany();
  const some = company.ids.slice(0, 25);
  await company.change(some, { name: "Ann" });
  // The unflushed entries alone cost two read units. The next request therefore reads only them and the head row at first. It reads the
  // change log only if the head row names a new chunk (row) of the log.
  expect(await company.pull()).toMatchObject({ rounds: 1 });
  expect(await company.pull()).toMatchObject({ items: [], rounds: 1, units: 2 });
  await company.change(some, { name: "Eve" });
  await company.flush();
  const { items, ...cost } = await company.pull();
  const listed = await company.listed();
  expect(upserts(items)).toEqual(new Map(some.map((id) => [id, listed.get(id)])));
  // The head row of the search index costs one unit, the change log costs half a unit, and the copies cost half a unit.
  expect(cost).toMatchObject({ rounds: 2, units: 2 });
});

test.each([true, false])(
  "deleted prospects are removed without reading their rows (flushed: %s)",
  async (isFlushed) => {
    const company = await newCompany();
    await company.change(company.scattered.slice(0, 5), { assignedToUserId: company.other.userId });
    for (const id of company.scattered) await deleteProspect(company.context, company.owner, id);
    if (isFlushed) await company.flush();
    const { items, units, rounds } = await company.pull();
    expect(new Map(items.map((item) => [item.id, item]))).toEqual(
      new Map(
        company.scattered.map((id) => [
          id,
          { type: "prospects", id, version: expect.any(Number), op: "remove", reason: "deleted" },
        ]),
      ),
    );
    expect({ rounds, isCheap: units <= 2 + company.scattered.length / 4 }).toEqual({ rounds: 1, isCheap: true });
    const seen = await company.pull(company.rep);
    const reasons = seen.items.map((item) => (item.op === "remove" ? item.reason : item.op));
    expect(reasons.toSorted()).toEqual([
      ...Array.from({ length: company.scattered.length - 5 }, () => "deleted"),
      ...Array.from({ length: 5 }, () => "hidden"),
    ]);
  },
);

test("a prospect without a copy is read at the same time as the copies of the others", async () => {
  const company = await newCompany();
  const [id = expect.fail()] = company.scattered;
  const large = Array.from({ length: 99 }, (_, i) => i * 7_919);
  await company.change([id], { customFieldData: { large } });
  await company.pull();
  await company.change(company.scattered, { name: "Eve" });
  await company.flush();
  const { items, rounds } = await company.pull();
  expect(items).toHaveLength(company.scattered.length);
  expect(rounds).toBe(2);
});

test("a flush stores no copies for a company whose devices read no changes", async () => {
  const { context, owner } = await newStage(db);
  for (let i = 0; i < 5; i++) await createProspect(context, owner, { name: "Maria" });
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  const rows: unknown[] = [];
  const range = changeLogKeys.copies(owner.companyId, 0, Number.MAX_SAFE_INTEGER);
  for await (const item of context.table.query(range)) rows.push(item);
  expect(rows).toEqual([]);
});
