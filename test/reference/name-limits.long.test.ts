/** Tests that concurrent requests do not exceed the maximum number of a company's statuses. */
import { expect, test } from "vitest";
import { iso, systemClock } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import type { StoredStatus } from "#shared/reference/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createStatus } from "../harness/verbs.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const REQUESTS = 30;
/** Number of statuses that the company can still create. */
const ROOM = 3;
/** The lowest id of the rows that the test writes directly. The service assigns no such high ids in the test. */
const UNUSED_IDS = 1_000_000_000;

const each = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

test("30 concurrent requests for a new status leave exactly the maximum number of statuses", async () => {
  const context = warmFunction(db, systemClock);
  const { companyId } = await newOwner(context);
  const { statuses } = await loadDictionary(context.table, companyId);
  const rows = each(limits.statusesPerCompany - statuses.size - ROOM).map((i): StoredStatus => {
    const dates = { createdAt: iso(0), updatedAt: iso(0) };
    const shown = { value: `s${i}`, color: "#000000", sortOrder: 9, isActive: true };
    return { type: "status", id: i + UNUSED_IDS, ...shown, version: 1, ...dates };
  });
  await context.table.batchPut(rows.map((status) => ({ ...keys.status(companyId, status.id), ...status })));
  const created = each(REQUESTS).map((i) => createStatus(context, companyId, { value: `new ${i}` }));
  const refused = (await Promise.allSettled(created)).filter((result) => result.status === "rejected");
  expect(refused).toHaveLength(REQUESTS - ROOM);
  for (const { reason } of refused) {
    expect(reason).toMatchObject({ code: "conflict", message: expect.stringContaining("may have at most") });
  }
  expect((await loadDictionary(context.table, companyId)).statuses.size).toBe(limits.statusesPerCompany);
});
