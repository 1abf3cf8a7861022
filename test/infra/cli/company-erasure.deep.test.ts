/** Tests the admin commands that suspend, resume and erase a company. */
import { describe, expect, test } from "vitest";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { eraseCompany, erasureOf, QUIET_MS, remainsOf } from "../../../infra/cli/company/erasure.ts";
import { markedCompany, resume, suspend } from "../../../infra/cli/company/suspension.ts";
import { Killed } from "../../harness/killable.ts";
import { killPoints } from "../../harness/kills.ts";
import { createAccount, createKey } from "../../harness/verbs.ts";
import { companyScene, nothing } from "./company-scene.ts";

const { context, time, users, kills, company, copyToOld, others, newName, suspended } = await companyScene();
const { table } = context.rows;

describe("a suspended company", () => {
  test("has no user who can sign in, until it is resumed", async () => {
    const name = newName();
    const companyId = await company(name);
    const call = () => lookUpCaller({ table, clock: context.clock }, `sub-owner@${name}.test`);
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
    expect(await erasureOf(context.rows.table, companyId)).toEqual(erasure);
    expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
    expect([...users.keys()].filter((email) => email.endsWith(`@${other.name}.test`))).toHaveLength(2);
    expect((await remainsOf(context, other.companyId)).files).toBe(5);
  });

  test("removes the service accounts of the company with their keys", async () => {
    const name = newName();
    const companyId = await company(name);
    const api = contextOn(table, context.clock);
    const caller = await lookUpCaller(api, `sub-owner@${name}.test`);
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
      expect(await erasureOf(context.rows.table, companyId)).toMatchObject({ rows: { company: 1, user: 2 } });
      expect([...users.keys()].filter((email) => email.endsWith(`@${name}.test`))).toEqual([]);
      if (!(first instanceof Killed)) break;
    }
  });
});
