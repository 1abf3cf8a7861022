/** Tests the look-up of prospects by the ids that devices have chosen for them. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import { findClientRecords } from "#shared/prospects/client-records.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createProspect } from "../harness/verbs.ts";
import { newStage } from "../sync/stage.ts";

const db = faultyDynamoDb();

test("a look-up that finds all rows costs half a read unit for each row, and a missing row is read again with strong consistency", async () => {
  const { context, owner } = await newStage(db);
  const ids = [randomUUID(), randomUUID().toUpperCase()];
  const made: (readonly [string, number])[] = [];
  for (const clientRecordId of ids) {
    made.push([clientRecordId.toLowerCase(), (await createProspect(context, owner, { clientRecordId })).id]);
  }
  const all = new Set(ids.map((id) => id.toLowerCase()));
  const first = await metered(() => findClientRecords(context, owner, all));
  expect([first.result, first.usage.readUnits]).toEqual([new Map(made), 1]);
  const withMissing = await metered(() => findClientRecords(context, owner, new Set([...all, randomUUID()])));
  expect([withMissing.result, withMissing.usage.readUnits]).toEqual([new Map(made), 2.5]);
});

test("a row that an eventually consistent read does not see yet is found", async () => {
  const { context, owner } = await newStage(db);
  const clientRecordId = randomUUID();
  const { id } = await createProspect(context, owner, { clientRecordId });
  const table: Table = {
    ...context.table,
    batchGet: async (keys, options) =>
      options?.consistency === "eventual" ? [] : context.table.batchGet(keys, options),
  };
  expect(await findClientRecords({ table }, owner, new Set([clientRecordId]))).toEqual(new Map([[clientRecordId, id]]));
});
