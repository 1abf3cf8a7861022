/** Tests the erasure of a company with rows in two tables, of a large company, and of a company that shares an address with another one. */
import { describe, expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { eraseCompany, erasureOf, remainsOf } from "../../../infra/cli/company/erasure.ts";
import { removeRows } from "../../../infra/cli/company/rows.ts";
import { resume } from "../../../infra/cli/company/suspension.ts";
import { Killed } from "../../harness/killable.ts";
import { companyScene, nothing } from "./company-scene.ts";

const { context, users, kills, copyToOld, suspended } = await companyScene();

/** Returns a company that is erased in the service's table, but not in the old table. */
async function erasedInOneTable() {
  const { name, companyId } = await suspended();
  const late = await copyToOld(companyId, name);
  await eraseCompany({ ...context, others: [] }, companyId, name);
  return { name, companyId, late };
}

describe("an erasure with a second table, as after a switch to a restored one", () => {
  test("that is repeated erases a company that the second table still has", async () => {
    const { name, companyId, late } = await erasedInOneTable();
    expect((await remainsOf(context, companyId)).others).toMatchObject({ "Canvassing-old": { company: 1, user: 3 } });
    const first = await erasureOf(context.rows.table, companyId);
    expect(await eraseCompany(context, companyId, name)).toEqual(first);
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect(users.has(late)).toBe(false);
  });

  test("erases a company that only the second table has, if its name is confirmed", async () => {
    const { name, companyId } = await suspended();
    await copyToOld(companyId, name);
    await removeRows(context.rows, companyId, () => false);
    await expect(eraseCompany(context, companyId, "Other")).rejects.toThrow("--confirm must be the name");
    expect((await eraseCompany(context, companyId, name)).rows).toMatchObject({ company: 1, user: 3 });
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
    expect(await erasureOf(context.rows.table, companyId)).toBeDefined();
  });
});

describe("an erasure", () => {
  test("removes the rows of many pages in one pass", async () => {
    const text = "x".repeat(30_000);
    const rows = Array.from({ length: 300 }, (_, i) => ({
      pk: `C#7777777#P#${i % 9}`,
      sk: `P#${i}`,
      type: "test",
      text,
    }));
    await context.rows.table.batchPut(rows);
    expect(await removeRows(context.rows, 7_777_777, () => false)).toBe(300);
    expect(await remainsOf(context, 7_777_777)).toEqual(nothing);
  });

  test("never frees an id: the next company has a higher one", async () => {
    const { name, companyId } = await suspended();
    const highest = (await context.rows.table.get(keys.idCounter()))?.nextBlock;
    await eraseCompany(context, companyId, name);
    expect((await context.rows.table.get(keys.idCounter()))?.nextBlock).toBe(highest);
    const owner = { email: `next@${name}.test`, firstName: "A", lastName: "B", sub: `next-${name}` };
    const { company } = await createCompany(contextOn(context.rows.table), { name: "Next", owner });
    expect(company.id).toBeGreaterThan(companyId);
  });

  test("keeps the pool's user of another company who has the same address", async () => {
    const { name, companyId } = await suspended();
    users.set(`rep@${name}.test`, "subject of another company's user");
    await eraseCompany(context, companyId, name);
    expect(users.get(`rep@${name}.test`)).toBe("subject of another company's user");
  });

  test("that has begun cannot be undone by resuming the company", async () => {
    const { name, companyId } = await suspended();
    expect(await kills.at(14, () => eraseCompany(context, companyId, name))).toBeInstanceOf(Killed);
    const { table } = context.rows;
    await expect(resume({ table, clock: context.clock }, companyId)).rejects.toThrow("cannot be resumed");
  });
});
