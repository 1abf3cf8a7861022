/** Tests how an export reads the rows of its prospects: each block of ids at most once, and an outdated row a second time. */
import { expect, test } from "vitest";
import { blockOf, prospect } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { exportRows } from "#shared/prospects/csv/export-rows.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createNote, createProspect, updateProspect } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };

async function madeProspects(count: number) {
  const context = warmFunction(db, { now: () => now.ms++ });
  const { caller } = await newCompany(context);
  const wanted: { id: number; version: number }[] = [];
  for (let i = 0; i < count; i++) {
    const { id } = await createProspect(context, caller, { name: `n${i}` });
    wanted.push({ id, version: 1 });
  }
  const counts = new Map([...Map.groupBy(wanted, ({ id }) => blockOf(id))].map(([block, own]) => [block, own.length]));
  return { context, caller, wanted, counts };
}

test("a block of which an export needs many prospects is read once, and forgotten after the last of them", async () => {
  const { context, caller, wanted, counts } = await madeProspects(40);
  const read = exportRows(context.table, caller.companyId, counts);
  const [first, second] = [wanted.slice(0, 20), wanted.slice(20)];
  const requests = async (batch: typeof wanted) => {
    const { usage, result } = await metered(() => read(batch));
    expect(result.map((row) => row?.prospect.id)).toEqual(batch.map(({ id }) => id));
    return usage.requests;
  };
  expect(await requests(first)).toBeGreaterThan(0);
  expect(await requests(second)).toBe(0);
  expect(await requests(second)).toBeGreaterThan(0);
});

test("a row that an eventually consistent read misses, or shows older than the index, is read again", async () => {
  const { context, caller, wanted, counts } = await madeProspects(1);
  const [{ id } = { id: 0 }] = wanted;
  const { table } = context;
  const old = await table.batchGet([prospect(caller.companyId, id)]);
  await updateProspect(context, caller, id, { name: "changed" });
  for (const seen of [[], old]) {
    const behind: typeof table.batchGet = async (keys, options) =>
      options?.consistency === "eventual" ? seen : table.batchGet(keys, options);
    const read = exportRows({ ...table, batchGet: behind }, caller.companyId, counts);
    expect(await read([{ id, version: 2 }])).toMatchObject([{ prospect: { name: "changed", version: 2 } }]);
  }
});

test("each prospect of a block gets its newest note, whether few or many notes lie beside it", async () => {
  const { context, caller, wanted, counts } = await madeProspects(20);
  const noted = [0, 7, 8, 19].map((i) => wanted[i]?.id ?? 0);
  for (const [i, id] of noted.entries()) {
    for (let n = 0; n < (i === 1 ? 6 : 2); n++) await createNote(context, caller, id, { body: `${n}` });
  }
  const rows = await exportRows(context.table, caller.companyId, counts)(wanted);
  const expected = wanted.map(({ id }) => (noted.includes(id) ? (id === noted[1] ? "5" : "1") : undefined));
  expect(rows.map((row) => row?.note?.body)).toEqual(expected);
});
