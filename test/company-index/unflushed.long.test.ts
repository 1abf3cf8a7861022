/** Tests that lists stay exact while the company index is not flushed for many writes. */
import { expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { indexedCompanies } from "./indexed-company.ts";

const db = faultyDynamoDb();
const { newCompany, flushAll } = indexedCompanies(db);

test("lists stay exact after 10 000 writes without a flush", async () => {
  const company = newCompany();
  await company.createMany(10_000);
  const unflushed = async () => (await readUnflushed(db.direct, company.id)).keys.length;
  expect(await unflushed()).toBe(10_000);
  const warm = openCompanyIndex(db.direct);
  await company.expectListsExact(db.direct, warm);
  await flushAll(company);
  await company.expectListsExact(db.direct, warm);
  await company.expectListsExact();
  expect(await unflushed()).toBe(0);
});
