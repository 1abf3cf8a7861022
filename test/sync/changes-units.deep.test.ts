/**
 * Tests the read units, the rounds and the page sizes of `GET /api/changes`, and the write units of a flush with its chunk of the change
 * log.
 */
import { expect, test } from "vitest";
import { flush } from "#shared/company-index/write/flush.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createAppointment, createNote, createProspect, updateNote, updateProspect } from "../harness/verbs.ts";
import { feedOf } from "./feed.ts";
import { importProspects } from "./imported.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
const COUNT = 70;
const all = { least: 1, settleMs: 0 };

test("the units of a snapshot, of a request that finds nothing, and of one that finds changes", async () => {
  const { context, owner } = await newStage(db);
  const { companyId } = owner;
  const ids: number[] = [];
  for (let i = 0; i < COUNT; i++) ids.push((await createProspect(context, owner, { name: `Maria Garcia ${i}` })).id);
  await flush(context, companyId, all);
  const newFeed = () => feedOf(context, owner, { types: ["prospects"], forgets: true });
  const feed = newFeed();
  const pull = async () => {
    const { items, units, rounds } = await feed.pull();
    return { items: items.length, units, rounds };
  };
  const blocks = [...new Set(ids.map(blockOf))];
  const bare = await metered(async () => {
    for (const block of blocks)
      for await (const _ of context.table.query({ ...keys.prospectBlock(companyId, block), consistency: "eventual" }));
  });
  await newFeed().pull();
  const snapshot = await pull();
  const afterSnapshot = await pull();
  const idle = await pull();
  for (const id of ids.slice(0, 20)) await updateProspect(context, owner, id, { name: "Ann" });
  const unflushed = await pull();
  const idleAgain = await pull();
  await flush(context, companyId, all);
  for (const id of ids.slice(0, 60)) await updateProspect(context, owner, id, { name: "Eve" });
  const { usage } = await metered(() => flush(context, companyId, all));
  const flushed = await pull();
  // In addition to the rows of the prospects, a page of a snapshot reads the head row of the search index, which costs one unit.
  expect(snapshot).toEqual({ items: COUNT, units: bare.usage.readUnits + 1, rounds: 2 });
  // If nothing has changed, a request reads only the head row, which costs one unit.
  for (const { items, units, rounds } of [afterSnapshot, idle]) {
    expect([items, rounds]).toEqual([0, 1]);
    expect(units).toBeLessThanOrEqual(1);
  }
  expect([idleAgain.items, idleAgain.rounds]).toEqual([0, 1]);
  expect(idleAgain.units).toBeLessThanOrEqual(1 + 20 / 8);
  expect([unflushed.items, flushed.items]).toEqual([20, 60]);
  expect(unflushed.units).toBeLessThanOrEqual(20 + 3);
  expect(unflushed.rounds).toBeLessThanOrEqual(2);
  expect(flushed.units).toBeLessThanOrEqual(60 + 3);
  expect(flushed.rounds).toBeLessThanOrEqual(3);
  // The flush deletes 60 entries for one unit each. It also writes the chunk of the change log (two units) and the head row. The head row
  // costs two units instead of one, because a write in a transaction costs twice as much.
  expect(usage.writeUnits).toBeLessThanOrEqual(60 + 8 + 60 / 10);
});

test.each([
  { entries: 20, name: "Maria Garcia", units: 1 + 20 / 8 },
  { entries: 63, name: "Maria Garcia", units: 1 + 63 / 8 },
])(
  "a request that finds nothing costs at most $units units with $entries unflushed entries",
  async ({ entries, name, units }) => {
    const { context, owner } = await newStage(db);
    for (let i = 0; i < entries; i++) await createProspect(context, owner, { name });
    const { pull } = feedOf(context, owner);
    for (let i = 0; i < 3; i++) await pull();
    const page = await pull();
    expect(page).toMatchObject({ items: [], hasMore: false, rounds: 1 });
    expect(page.units).toBeLessThanOrEqual(units);
  },
);

test("of 70 prospects with notes that become visible, one page contains 64, and the next one the others", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail()] = reps;
  const ids: number[] = [];
  for (let i = 0; i < 70; i++) {
    const { id } = await createProspect(context, owner, { name: "Maria" });
    await createNote(context, owner, id, { body: "Call again" });
    ids.push(id);
  }
  const { pull, pagesUntil } = feedOf(context, rep, { forgets: true });
  for (let i = 0; i < 2; i++) await pull();
  for (const id of ids) await updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  await flush(context, owner.companyId, all);
  const pages = await pagesUntil(({ hasMore }) => !hasMore);
  expect(pages.map(({ items }) => items.length)).toEqual([2 * 64, 2 * 6]);
});

test.each([true, false])(
  "prospects that become visible or hidden are read in one round with their notes and appointments (flushed: %s)",
  async (isFlushed) => {
    const { context, owner, reps } = await newStage(db);
    const [rep = expect.fail(), other = expect.fail()] = reps;
    const ids: number[] = [];
    for (let i = 0; i < 6; i++) {
      const { id } = await createProspect(context, owner, { assignedToUserId: (i % 2 === 0 ? rep : other).userId });
      await createNote(context, owner, id, { body: "Call again" });
      if (i >= 2) await createAppointment(context, owner, id, { title: "Visit", startAt: "2030-01-01T00:00:00.000Z" });
      ids.push(id);
    }
    const { pull } = feedOf(context, rep, { forgets: true });
    await flush(context, owner.companyId, all);
    for (let i = 0; i < 3; i++) await pull();
    for (const [i, id] of ids.entries()) {
      await updateProspect(context, owner, id, { assignedToUserId: (i % 2 === 0 ? other : rep).userId });
    }
    if (isFlushed) await flush(context, owner.companyId, all);
    const { items, units, rounds } = await pull();
    const of = (op: string, type: string) => items.filter((item) => item.op === op && item.type === type).length;
    expect([of("remove", "prospects"), of("remove", "notes"), of("remove", "appointments")]).toEqual([3, 3, 2]);
    expect([of("upsert", "prospects"), of("upsert", "notes"), of("upsert", "appointments")]).toEqual([3, 3, 2]);
    // The change log costs at most two units. The row of each of the six prospects costs half a unit, and two Queries one unit each.
    expect(rounds).toBe(isFlushed ? 3 : 2);
    expect(units).toBeLessThanOrEqual(2 + 6 * 2.5);
  },
);

test("a prospect with 150 notes becomes visible with all of them", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail()] = reps;
  const { id } = await createProspect(context, owner, { name: "Maria Garcia" });
  for (let n = 0; n < 150; n++) await createNote(context, owner, id, { body: "Call again" });
  const { pull, rest } = feedOf(context, rep, { limit: 100 });
  for (let i = 0; i < 3; i++) await pull();
  await updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  const notes = (await rest()).filter(({ type }) => type === "notes");
  expect(new Set(notes.map((note) => note.id)).size).toBe(150);
});

test("a warm function reads a page of 200 prospects in two rounds", async () => {
  const { context, owner } = await newStage(db);
  const unassigned = Array.from({ length: 200 }, () => null);
  await importProspects(context, owner, unassigned);
  await flush(context, owner.companyId, all);
  const rounds: number[] = [];
  for (let i = 0; i < 3; i++) {
    const page = await feedOf(context, owner, { types: ["prospects"], forgets: true }).pull();
    expect(page.items).toHaveLength(200);
    rounds.push(page.rounds);
  }
  // The first request also reads rows that a newly started function reads only once.
  expect(rounds.slice(1)).toEqual([2, 2]);
});

test("notes of prospects that a rep may not see cost the rep's devices no reads", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail(), other = expect.fail()] = reps;
  const hidden = await createProspect(context, owner, { assignedToUserId: other.userId });
  const unassigned = await createProspect(context, owner, {});
  const own = await createProspect(context, owner, { assignedToUserId: rep.userId });
  const feed = feedOf(context, rep);
  const pull = async () => {
    const { items, units } = await feed.pull();
    return { items: items.length, units };
  };
  await flush(context, owner.companyId, all);
  for (let i = 0; i < 3; i++) await pull();
  const { id } = await createNote(context, owner, hidden.id, { body: "Call again" });
  for (let i = 0; i < 19; i++) await createNote(context, owner, i % 2 ? hidden.id : unassigned.id, { body: `${i}` });
  await updateNote(context, owner, id, { body: "Called" });
  const unflushed = await pull();
  await flush(context, owner.companyId, all);
  expect([unflushed, await pull()]).toEqual([
    { items: 0, units: 1 },
    { items: 0, units: 1.5 },
  ]);
  await createNote(context, owner, own.id, { body: "Yours" });
  expect((await pull()).items).toBe(1);
});

test("a note is created and logged if its prospect is assigned to another user at the same time", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail(), other = expect.fail()] = reps;
  const { id } = await createProspect(context, owner, { assignedToUserId: other.userId });
  // The prospect is reassigned after `createNote` has read it, and before the transaction.
  const table: Table = {
    ...context.table,
    async batchGet(wanted, options) {
      const items = await context.table.batchGet(wanted, options);
      await updateProspect(context, owner, id, { assignedToUserId: rep.userId });
      return items;
    },
  };
  const racing = { ...context, table };
  const note = await createNote(racing, owner, id, { body: "Call again" });
  const shown = await feedOf(context, rep).rest();
  expect(shown.map((item) => item.id)).toContain(note.id);
});
