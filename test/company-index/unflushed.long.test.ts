/** Tests that lists stay exact while the company index is not flushed for many writes. */
import { expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { Records } from "./records.ts";

const db = faultyDynamoDb();

test("lists stay exact after 10 000 writes without a flush", async () => {
  const records = new Records(db, 1_000);
  await records.writeMany(2_500, 4);
  expect((await readUnflushed(db.direct, records.companyId)).keys).toHaveLength(10_000);
  await records.remove(7);
  await records.note(500, 8, "DOG");
  const warm = openCompanyIndex(db.direct);
  await records.expectFound(warm);
  const clock = { now: () => 1_760_000_000_000 };
  await flush({ table: db.direct, clock }, records.companyId, { least: 1, settleMs: 0 });
  await records.expectFound(warm);
  await records.expectFound();
  await records.expectClean();
});
