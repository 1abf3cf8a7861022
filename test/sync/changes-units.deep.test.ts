/** Tests the read units, rounds and page sizes of `GET /api/changes`, and the write units of a flush with its chunk. */
import { expect, test } from "vitest";
import { FLUSH_ENTRIES, flush } from "#shared/company-index/write/flush.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createNote, createProspect, updateNote, updateProspect } from "../harness/verbs.ts";
import { feedOf } from "./feed.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
const COUNT = 70;
/** One more entry would start a flush. */
const MOST_UNFLUSHED = FLUSH_ENTRIES - 1;
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
  for (const id of ids.slice(0, MOST_UNFLUSHED)) await updateProspect(context, owner, id, { name: "Ann" });
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
  expect(idleAgain.units).toBeLessThanOrEqual(1 + MOST_UNFLUSHED / 8);
  expect([unflushed.items, flushed.items]).toEqual([MOST_UNFLUSHED, 60]);
  expect(unflushed.units).toBeLessThanOrEqual(MOST_UNFLUSHED + 3);
  expect(unflushed.rounds).toBeLessThanOrEqual(2);
  expect(flushed.units).toBeLessThanOrEqual(60 + 3);
  expect(flushed.rounds).toBeLessThanOrEqual(3);
  // The flush deletes 60 entries for one unit each. It also writes the chunk of the change log (two units) and the head row. The head row
  // costs two units instead of one, because a write in a transaction costs twice as much.
  expect(usage.writeUnits).toBeLessThanOrEqual(60 + 8 + 60 / 10);
});

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
