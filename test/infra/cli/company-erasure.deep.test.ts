/** Tests the admin commands that suspend, resume and erase a company. */
import { afterEach, describe, expect, test } from "vitest";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { eraseCompany, erasureOf, QUIET_MS, remainsOf } from "../../../infra/cli/company/erasure.ts";
import { removeRows } from "../../../infra/cli/company/rows.ts";
import { markedCompany, resume, suspend } from "../../../infra/cli/company/suspension.ts";
import { Killed } from "../../harness/killable.ts";
import { killPoints } from "../../harness/kills.ts";
import { companyScene } from "./company-scene.ts";

const scene = companyScene();
afterEach(() => {
  scene.get().kills.killAt = Number.POSITIVE_INFINITY;
});

/** What `remainsOf` returns if the service's table, the old table (`Canvassing-old`) and the bucket contain nothing of the company. */
const nothing = { rows: {}, others: { "Canvassing-old": {} }, files: 0 };

let names = 0;
async function suspended() {
  const { context, time, company } = scene.get();
  const name = `company-${names++}`;
  const companyId = await company(name);
  await suspend({ table: context.rows.table, clock: context.clock }, companyId);
  time.now += QUIET_MS;
  return { name, companyId };
}

describe("a suspended company", () => {
  test("has no user who can sign in, until it is resumed", async () => {
    const { context, company } = scene.get();
    const name = `suspended-${names++}`;
    const companyId = await company(name);
    const { table } = context.rows;
    const call = () => lookUpCaller({ table, clock: context.clock }, `sub-owner@${name}.test`);
    expect(await call()).toMatchObject({ companyId });
    expect(await suspend({ table, clock: context.clock }, companyId)).toBe(2);
    await expect(call()).rejects.toMatchObject({ code: "unauthenticated" });
    expect(await resume({ table, clock: context.clock }, companyId)).toBe(2);
    expect(await call()).toMatchObject({ companyId });
    expect(await markedCompany(table, companyId)).not.toHaveProperty("suspendedAt");
  });

  test("must exist", async () => {
    const { rows, clock } = scene.get().context;
    for (const command of [suspend, resume]) {
      await expect(command({ table: rows.table, clock }, 987_654)).rejects.toThrow("company 987654 is unknown");
    }
    expect(await rows.table.get(keys.company(987_654))).toBeUndefined();
  });
});

/** Returns a company that is erased in the service's table, but not in the old table. */
async function erasedInOneTable() {
  const { context, copyToOld } = scene.get();
  const { name, companyId } = await suspended();
  const late = await copyToOld(companyId, name);
  await eraseCompany({ ...context, others: [] }, companyId, name);
  return { name, companyId, late };
}

describe("an erasure with a second table, as after a switch to a restored one", () => {
  test("leaves nothing of the company in either table, and records the erasure in both", async () => {
    const { context, users, copyToOld } = scene.get();
    const { name, companyId } = await suspended();
    const late = await copyToOld(companyId, name);
    expect(users.has(late)).toBe(true);
    expect((await remainsOf(context, companyId)).others).toMatchObject({ "Canvassing-old": { company: 1, user: 3 } });
    const erasure = await eraseCompany(context, companyId, name);
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
    for (const { table } of [context.rows, ...context.others]) {
      expect(await erasureOf(table, companyId)).toEqual(erasure);
    }
  });

  test("that is repeated erases a company that the second table still has", async () => {
    const { context, users } = scene.get();
    const { name, companyId, late } = await erasedInOneTable();
    expect((await remainsOf(context, companyId)).others).toMatchObject({ "Canvassing-old": { company: 1, user: 3 } });
    const first = await erasureOf(context.rows.table, companyId);
    expect(await eraseCompany(context, companyId, name)).toEqual(first);
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect(users.has(late)).toBe(false);
  });

  test("erases a company that only the second table has, if its name is confirmed", async () => {
    const { context, users, copyToOld } = scene.get();
    const { name, companyId } = await suspended();
    await copyToOld(companyId, name);
    await removeRows(context.rows, companyId, () => false);
    await expect(eraseCompany(context, companyId, "Other")).rejects.toThrow("--confirm must be the name");
    expect((await eraseCompany(context, companyId, name)).rows).toMatchObject({ company: 1, user: 3 });
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
    expect(await erasureOf(context.rows.table, companyId)).toBeDefined();
  });

  test("keeps the other companies of the second table", async () => {
    const { context, copyToOld } = scene.get();
    const other = await suspended();
    await copyToOld(other.companyId, other.name);
    const before = await remainsOf(context, other.companyId);
    const { name, companyId } = await suspended();
    await copyToOld(companyId, name);
    await eraseCompany(context, companyId, name);
    expect(await remainsOf(context, other.companyId)).toEqual(before);
  });
});

describe("an erasure", () => {
  test("leaves no row, file or user of the company, changes nothing else, and says what it removed", async () => {
    const { context, users, others } = scene.get();
    const other = await suspended();
    const { name, companyId } = await suspended();
    const before = await others(companyId);
    const erasure = await eraseCompany(context, companyId, name);
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect(erasure.rows).toMatchObject({ company: 1, user: 2, identity: 2, email: 2, companyEmail: 2, status: 8 });
    const after = await others(companyId);
    expect(after.filter(({ pk }) => pk !== "ERASURES")).toEqual(before.filter(({ pk }) => pk !== "ERASURES"));
    expect(await erasureOf(context.rows.table, companyId)).toEqual(erasure);
    expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
    expect([...users.keys()].filter((email) => email.endsWith(`@${other.name}.test`))).toHaveLength(2);
    expect((await remainsOf(context, other.companyId)).files).toBe(5);
  });

  test("removes the rows of many pages in one pass", async () => {
    const { context } = scene.get();
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
    const { context } = scene.get();
    const { name, companyId } = await suspended();
    const highest = (await context.rows.table.get(keys.idCounter()))?.nextBlock;
    await eraseCompany(context, companyId, name);
    expect((await context.rows.table.get(keys.idCounter()))?.nextBlock).toBe(highest);
    const owner = { email: `next@${name}.test`, firstName: "A", lastName: "B", sub: `next-${name}` };
    const { company } = await createCompany(contextOn(context.rows.table), { name: "Next", owner });
    expect(company.id).toBeGreaterThan(companyId);
  });

  test("keeps the pool's user of another company who has the same address", async () => {
    const { context, users } = scene.get();
    const { name, companyId } = await suspended();
    users.set(`rep@${name}.test`, "subject of another company's user");
    await eraseCompany(context, companyId, name);
    expect(users.get(`rep@${name}.test`)).toBe("subject of another company's user");
  });

  test("that is repeated answers with the first report and removes nothing", async () => {
    const { context } = scene.get();
    const { name, companyId } = await suspended();
    const first = await eraseCompany(context, companyId, name);
    expect(await eraseCompany(context, companyId, name)).toEqual(first);
  });

  test("is refused for an active company, a wrong name, a recent suspension and an unfinished import", async () => {
    const { context, company, time } = scene.get();
    const { table } = context.rows;
    const name = `kept-${names++}`;
    const companyId = await company(name);
    await expect(eraseCompany(context, companyId, "Other")).rejects.toThrow("--confirm must be the name");
    await expect(eraseCompany(context, companyId, name)).rejects.toThrow("is active");
    await suspend({ table, clock: context.clock }, companyId);
    await expect(eraseCompany(context, companyId, name)).rejects.toThrow("may run until");
    time.now += QUIET_MS;
    const job = { pk: `C#${companyId}#M#7`, sk: "IMPORT" };
    await table.batchPut([{ ...job, type: "import", dueShard: keys.jobShard, dueAt: "2026" }]);
    await expect(eraseCompany(context, companyId, name)).rejects.toThrow(
      "1 imports, exports or bulk jobs are not finished",
    );
    await table.batchRemove([job]);
    await eraseCompany(context, companyId, name);
    await expect(eraseCompany(context, 987_654, "x")).rejects.toThrow("company 987654 is unknown");
  });

  test("that has begun cannot be undone by resuming the company", async () => {
    const { context, kills } = scene.get();
    const { name, companyId } = await suspended();
    kills.killAt = kills.calls + 14;
    await expect(eraseCompany(context, companyId, name)).rejects.toThrow(Killed);
    kills.killAt = Number.POSITIVE_INFINITY;
    const { table } = context.rows;
    await expect(resume({ table, clock: context.clock }, companyId)).rejects.toThrow("cannot be resumed");
  });

  test("that is killed at any call ends when it runs again", { tags: ["sized"] }, async () => {
    const { context, kills, users, copyToOld } = scene.get();
    for (const call of killPoints(0)) {
      const { name, companyId } = await suspended();
      await copyToOld(companyId, name);
      kills.killAt = kills.calls + call;
      const first = await eraseCompany(context, companyId, name).catch((error: unknown) => error);
      kills.killAt = Number.POSITIVE_INFINITY;
      await eraseCompany(context, companyId, name);
      expect(await remainsOf(context, companyId)).toEqual(nothing);
      expect(await erasureOf(context.rows.table, companyId)).toMatchObject({ rows: { company: 1, user: 2 } });
      expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
      if (!(first instanceof Killed)) break;
    }
  });
});
