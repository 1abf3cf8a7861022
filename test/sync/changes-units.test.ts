/**
 * Tests the read units, the rounds and the page sizes of `GET /api/changes`, and the write units of a flush with its chunk of the change
 * log.
 */
import { expect, test } from "vitest";
import { flush } from "#shared/company-index/write/flush.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { forgetRows } from "#shared/prospects/list/recent-rows.ts";
import { createProspect, updateProspect } from "#shared/prospects/write.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
const COUNT = 120;
const all = { least: 1, settleMs: 0 };

test("the units of a snapshot, of a request that finds nothing, and of one that finds changes", async () => {
  const { context, owner } = await newStage(db);
  const { companyId } = owner;
  const ids: number[] = [];
  for (let i = 0; i < COUNT; i++) ids.push((await createProspect(context, owner, { name: `Maria Garcia ${i}` })).id);
  await flush(context, companyId, all);
  let cursor: string | undefined;
  const pull = async () => {
    forgetRows(context.table);
    const { result, usage } = await metered(() =>
      readChanges(context, owner, { limit: 500, types: cursor === undefined ? ["prospects"] : undefined, cursor }),
    );
    cursor = result.cursor;
    return { items: result.items.length, units: usage.readUnits, rounds: usage.rounds };
  };
  const blocks = [...new Set(ids.map(blockOf))];
  const bare = await metered(async () => {
    for (const block of blocks)
      for await (const _ of context.table.query({ ...keys.prospectBlock(companyId, block), consistency: "eventual" }));
  });
  await pull();
  cursor = undefined;
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
  // The head row costs one unit. The Query for chunks of the change log costs half a unit, even if it finds none.
  expect([afterSnapshot, idle, idleAgain]).toEqual(Array(3).fill({ items: 0, units: 1.5, rounds: 1 }));
  expect(unflushed).toMatchObject({ items: 20, rounds: 2 });
  expect(unflushed.units).toBeLessThanOrEqual(2 + 20 / 4);
  expect(flushed).toMatchObject({ items: 60, rounds: 2 });
  expect(flushed.units).toBeLessThanOrEqual(2 + 60 / 4);
  // The flush writes the chunk of the change log, which costs two units. It also writes the head row, which costs two units instead of one,
  // because a write in a transaction costs twice as much.
  expect(usage.writeUnits).toBeLessThanOrEqual(60 + 8);
});

test.each([
  { entries: 20, name: "Maria Garcia", units: 1.5 },
  { entries: 63, name: "Maria Garcia", units: 2 },
])(
  "a request that finds nothing costs $units units with $entries unflushed entries",
  async ({ entries, name, units }) => {
    const { context, owner } = await newStage(db);
    for (let i = 0; i < entries; i++) await createProspect(context, owner, { name });
    let cursor: string | undefined;
    const pull = () => readChanges(context, owner, { limit: 500, types: undefined, cursor });
    for (let i = 0; i < 3; i++) ({ cursor } = await pull());
    const { result, usage } = await metered(pull);
    expect(result).toMatchObject({ items: [], hasMore: false });
    expect(usage).toMatchObject({ readUnits: units, rounds: 1 });
  },
);

test("of 100 prospects that become visible, one page contains 64, and the next one the others", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep] = reps;
  if (rep === undefined) throw new Error("the company has no rep");
  const ids: number[] = [];
  for (let i = 0; i < 100; i++) ids.push((await createProspect(context, owner, { name: "Maria" })).id);
  let cursor: string | undefined;
  const pull = () => {
    forgetRows(context.table);
    return metered(() => readChanges(context, rep, { limit: 500, types: undefined, cursor }));
  };
  for (let i = 0; i < 2; i++) ({ cursor } = (await pull()).result);
  for (const id of ids) await updateProspect(context, owner, id, { assignedToUserId: rep.userId });
  await flush(context, owner.companyId, all);
  const pages: { items: number; hasMore: boolean }[] = [];
  for (let hasMore = true; hasMore; ) {
    const { result } = await pull();
    ({ cursor, hasMore } = result);
    pages.push({ items: result.items.length, hasMore });
  }
  expect(pages).toEqual([
    { items: 64, hasMore: true },
    { items: 36, hasMore: false },
  ]);
});

test("a warm function reads a page of 300 prospects in two rounds", async () => {
  const { context, owner } = await newStage(db);
  for (let i = 0; i < 300; i++) await createProspect(context, owner, { name: "Maria" });
  await flush(context, owner.companyId, all);
  const rounds: number[] = [];
  for (let i = 0; i < 2; i++) {
    forgetRows(context.table);
    const query = { limit: 500, types: ["prospects" as const], cursor: undefined };
    const { result, usage } = await metered(() => readChanges(context, owner, query));
    expect(result.items).toHaveLength(300);
    rounds.push(usage.rounds);
  }
  // The first request of a function does not know yet how large the prospects are, and reads them in two portions.
  expect(rounds.at(-1)).toBe(2);
});
