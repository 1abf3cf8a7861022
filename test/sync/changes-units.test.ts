/** Tests the read units and the rounds of `GET /api/changes`, and the write units of a flush with its chunk of the change log. */
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
