/** Tests the admin commands that suspend, resume and erase a company, whose rows may be in two tables. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { eraseCompany, erasureOf, QUIET_MS, remainsOf, remainsUntil } from "../../../infra/cli/company/erasure.ts";
import { Pace, removeRows } from "../../../infra/cli/company/rows.ts";
import { markedCompany, resume, suspend } from "../../../infra/cli/company/suspension.ts";
import { Killed } from "../../harness/killable.ts";
import { killPoints } from "../../harness/kills.ts";
import { present } from "../../harness/shapes.ts";
import { createAccount, createKey } from "../../harness/verbs.ts";
import { companyScene, nothing } from "./company-scene.ts";

const { context, time, users, kills, company, copyToOld, others, newName, suspended } = await companyScene();
const { table } = context.rows;
const ownerOf = (name: string): string => present(users.get(`owner@${name}.test`));

describe("a suspended company", () => {
  test("has no user who can sign in, until it is resumed", async () => {
    const name = newName();
    const companyId = await company(name);
    const call = () => lookUpCaller({ table, clock: context.clock }, ownerOf(name));
    expect(await call()).toMatchObject({ companyId });
    expect(await suspend({ table, clock: context.clock }, companyId)).toBe(2);
    await expect(call()).rejects.toMatchObject({ code: "unauthenticated" });
    expect(await resume({ table, clock: context.clock }, companyId)).toBe(2);
    expect(await call()).toMatchObject({ companyId });
    expect(await markedCompany(table, companyId)).not.toHaveProperty("suspendedAt");
  });

  test("must exist", async () => {
    for (const command of [suspend, resume]) {
      await expect(command({ table, clock: context.clock }, 987_654)).rejects.toThrow("company 987654 is unknown");
    }
    expect(await table.get(keys.company(987_654))).toBeUndefined();
  });
});

describe("an erasure", () => {
  test("leaves no row, file or user of the company, changes nothing else, and says what it removed", async () => {
    const other = await suspended();
    const { name, companyId } = await suspended();
    const before = await others(companyId);
    const erasure = await eraseCompany(context, companyId, name);
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect(erasure.rows).toMatchObject({ company: 1, user: 2, identity: 2, email: 2, companyEmail: 2, status: 8 });
    const after = await others(companyId);
    expect(after.filter(({ pk }) => pk !== "ERASURES")).toEqual(before.filter(({ pk }) => pk !== "ERASURES"));
    expect(await erasureOf(table, companyId)).toEqual(erasure);
    expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
    expect([...users.keys()].filter((email) => email.endsWith(`@${other.name}.test`))).toHaveLength(2);
    expect((await remainsOf(context, other.companyId)).files).toBe(5);
  });

  test("removes the service accounts of the company with their keys", async () => {
    const name = newName();
    const companyId = await company(name);
    const api = contextOn(table, context.clock);
    const caller = await lookUpCaller(api, ownerOf(name));
    const { id, sub } = await createAccount(api, caller, { name, role: "admin", permissions: [] });
    const { key } = await createKey(api, caller, id, { name, scopes: ["audit:read"] });
    expect(await callerOfKey(api, key)).toMatchObject({ companyId, userId: id });
    await suspend({ table, clock: context.clock }, companyId);
    time.now += QUIET_MS;
    expect((await eraseCompany(context, companyId, name)).rows).toMatchObject({ user: 3, keyRing: 1 });
    expect(await table.get(keys.keyRing(sub))).toBeUndefined();
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    await expect(callerOfKey(api, key)).rejects.toMatchObject({ code: "unauthenticated" });
  });

  test("with a second table leaves nothing of the company in either table, and records the erasure in both", async () => {
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

  test("that is repeated erases a company that a second table still has", async () => {
    const { name, companyId } = await suspended();
    const late = await copyToOld(companyId, name);
    await eraseCompany({ ...context, others: [] }, companyId, name);
    expect((await remainsOf(context, companyId)).others).toMatchObject({ "Canvassing-old": { company: 1, user: 3 } });
    const first = await erasureOf(table, companyId);
    expect(await eraseCompany(context, companyId, name)).toEqual(first);
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect(users.has(late)).toBe(false);
  });

  test("erases a company that only a second table has, if its name is confirmed", async () => {
    const { name, companyId } = await suspended();
    await copyToOld(companyId, name);
    await removeRows(context.rows, companyId, () => false);
    await expect(eraseCompany(context, companyId, "Other")).rejects.toThrow("--confirm must be the name");
    expect((await eraseCompany(context, companyId, name)).rows).toMatchObject({ company: 1, user: 3 });
    expect(await remainsOf(context, companyId)).toEqual(nothing);
    expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
    expect(await erasureOf(table, companyId)).toBeDefined();
  });

  test("removes the rows of many pages in one pass", async () => {
    const text = "x".repeat(30_000);
    const rows = Array.from({ length: 300 }, (_, i) => ({
      pk: `C#7777777#P#${i % 9}`,
      sk: `P#${i}`,
      type: "test",
      text,
    }));
    await table.batchPut(rows);
    expect(await removeRows(context.rows, 7_777_777, () => false)).toBe(300);
    expect(await remainsOf(context, 7_777_777)).toEqual(nothing);
  });

  test("never frees an id: the next company has a higher one", async () => {
    const { name, companyId } = await suspended();
    const highest = (await table.get(keys.idCounter()))?.nextBlock;
    await eraseCompany(context, companyId, name);
    expect((await table.get(keys.idCounter()))?.nextBlock).toBe(highest);
    const owner = { email: `next@${name}.test`, firstName: "A", lastName: "B", sub: `next-${name}` };
    const { company } = await createCompany(contextOn(table), { name: "Next", owner });
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
    await expect(resume({ table, clock: context.clock }, companyId)).rejects.toThrow("cannot be resumed");
  });

  test("is refused for an active company, a wrong name, a recent suspension and an unfinished import", async () => {
    const name = newName();
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

  test("that is killed at any call ends when it runs again", { tags: ["sized"] }, async () => {
    for (const call of killPoints(0)) {
      const { name, companyId } = await suspended();
      await copyToOld(companyId, name);
      const first = await kills.at(call, () => eraseCompany(context, companyId, name));
      await eraseCompany(context, companyId, name);
      expect(await remainsOf(context, companyId)).toEqual(nothing);
      expect(await erasureOf(table, companyId)).toMatchObject({ rows: { company: 1, user: 2 } });
      expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
      if (!(first instanceof Killed)) break;
    }
  });
});

test("the report of an erasure contains the retention times of the deployment, not those of a standard deployment", () => {
  const erasedAt = "2026-11-01T00:00:00.000Z";
  const standard = remainsUntil(erasedAt, { logDays: 90, recoveryDays: 35, backupDays: 0 });
  expect(standard).toMatchObject({
    "log lines, which have ids and no names": "2027-01-30T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-12-06T00:00:00.000Z",
    "AWS Backup": "the plan makes no copies; copies made by hand, or under earlier settings, may remain longer",
  });
  const long = remainsUntil(erasedAt, { logDays: 1_827, recoveryDays: 7, backupDays: 365 });
  expect(long).toMatchObject({
    "log lines, which have ids and no names": "2031-11-02T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-11-08T00:00:00.000Z",
    "AWS Backup": "2027-11-01T00:00:00.000Z; copies made by hand, or under earlier settings, may remain longer",
  });
});

test("calls of the table wait until the units of earlier calls are paid for", async () => {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const pace = new Pace(100, async (ms) => {
    vi.setSystemTime(Date.now() + ms);
  });
  const starts: number[] = [];
  for (let i = 0; i < 5; i++) {
    starts.push(Date.now());
    await pace.pay(50);
  }
  expect(starts).toEqual([0, 500, 1_000, 1_500, 2_000]);
});
