/** Tests that concurrent requests do not exceed the maximum numbers of a company's statuses and tags. */
import { expect, test } from "vitest";
import { iso, systemClock } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import type { StoredStatus, StoredTag } from "#shared/reference/schema.ts";
import { ensureTags } from "#shared/reference/values.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createStatus } from "../harness/verbs.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const REQUESTS = 30;
/** The number of further statuses or tags for which the company has room. */
const ROOM = 3;
/** The lowest id of the rows that the tests write directly. The service assigns no such high ids in the tests. */
const UNUSED_IDS = 1_000_000_000;

const dates = { createdAt: iso(0), updatedAt: iso(0) };
const each = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

async function newCompany(): Promise<{ context: ApiContext; companyId: number }> {
  const context = warmFunction(db, systemClock);
  return { context, companyId: (await newOwner(context)).companyId };
}

async function addTagRows({ table }: ApiContext, companyId: number, count: number): Promise<void> {
  const tags = each(count).map(
    (id): StoredTag => ({ type: "tag", id: id + UNUSED_IDS, value: `t${id}`, color: "#000000", version: 1, ...dates }),
  );
  await table.batchPut(tags.map((tag) => ({ ...keys.tag(companyId, tag.id), ...tag })));
}

/** Returns the number of successful calls. Expects that each other call was refused because of the limit. */
async function successesOf(calls: readonly Promise<unknown>[]): Promise<number> {
  const results = await Promise.allSettled(calls);
  const refused = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  for (const reason of refused) {
    expect(reason).toMatchObject({ code: "conflict", message: expect.stringContaining("may have at most") });
  }
  return calls.length - refused.length;
}

test("30 concurrent requests for a new status leave exactly the maximum number of statuses", async () => {
  const { context, companyId } = await newCompany();
  const { statuses } = await loadDictionary(context.table, companyId);
  const rows = each(limits.statusesPerCompany - statuses.size - ROOM).map((id): StoredStatus => {
    const value = `s${id}`;
    return {
      type: "status",
      id: id + UNUSED_IDS,
      value,
      color: "#000000",
      sortOrder: 9,
      isActive: true,
      version: 1,
      ...dates,
    };
  });
  await context.table.batchPut(rows.map((status) => ({ ...keys.status(companyId, status.id), ...status })));
  const created = each(REQUESTS).map((i) => createStatus(context, companyId, { value: `new ${i}` }));
  expect(await successesOf(created)).toBe(ROOM);
  expect((await loadDictionary(context.table, companyId)).statuses.size).toBe(limits.statusesPerCompany);
});

test("of two concurrent imports that each fill the company's tags, one is refused, and the other makes all of its tags", async () => {
  const { context, companyId } = await newCompany();
  await addTagRows(context, companyId, limits.tagsPerCompany - ROOM);
  const imports = ["a", "b"].map((name) =>
    ensureTags(
      context,
      companyId,
      each(ROOM).map((i) => `${name} ${i}`),
    ),
  );
  expect(await successesOf(imports)).toBe(1);
  expect((await loadDictionary(context.table, companyId)).tags.size).toBe(limits.tagsPerCompany);
  // The company has no room for more tags, but these tags already exist.
  const known = each(ROOM).map((i) => `t${i}`);
  expect((await ensureTags(context, companyId, known)).size).toBe(ROOM);
});
