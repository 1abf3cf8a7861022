/** Tests that a restored company has what it had at the restore point, and that a restore is refused if it would do harm. */
import { describe, expect, test } from "vitest";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { resume, suspend } from "../../../infra/cli/company/suspension.ts";
import { restoreCompany } from "../../../infra/cli/restore/company.ts";
import { TABLE } from "../../harness/faulty-dynamodb.ts";
import { createAccount, createKey, createProspect, revokeKey } from "../../harness/verbs.ts";
import { newCompany } from "../../harness/warm-function.ts";
import { restoredCompany, SOURCE } from "./restored-company.ts";

const company = await restoredCompany();
const { storeOf, time, clock, fresh, caller, other, repId, before, seen, damage, restore, quietly } = company;

const key = { name: "k", scopes: ["audit:read" as const] };

describe("a restored company", () => {
  test("has what it had at the point, while other companies keep what they have", async () => {
    const warm = fresh();
    await damage();
    expect(await seen(warm, caller)).not.toEqual(before);
    await createProspect(fresh(), other, { name: "Stays" });
    const others = await seen(fresh(), other);
    await quietly();
    const { faults, brought, removed } = await restore();
    expect(faults).toEqual([]);
    expect(brought).toBeGreaterThan(0);
    expect(removed).toBeGreaterThan(0);
    expect(await seen(fresh(), caller)).toEqual(before);
    expect(await seen(warm, caller), "a warm function that has cached the damaged index").toEqual(before);
    const again = await metered(() => listProspects(warm, caller, ListQuery.parse({})));
    expect(again.usage.rounds, "the names are in memory again").toBe(1);
    expect(await seen(fresh(), other)).toEqual(others);
  });

  test("keeps its API keys, and those that were revoked after the point stay revoked", async () => {
    const { table } = storeOf(TABLE);
    const { id } = await createAccount(fresh(), caller, { name: "program", role: "admin", permissions: [] });
    const [kept, revoked] = [await createKey(fresh(), caller, id, key), await createKey(fresh(), caller, id, key)];
    await revokeKey(fresh(), caller, id, revoked.id);
    await quietly();
    await restore();
    await resume({ table, clock }, caller.companyId);
    expect(await callerOfKey(fresh(), kept.key)).toMatchObject({ userId: id });
    await expect(callerOfKey(fresh(), revoked.key)).rejects.toMatchObject({ code: "unauthenticated" });
  });

  test("keeps a right that was taken away after the point", async () => {
    const user = await storeOf(TABLE).table.get(keys.user(caller.companyId, repId));
    expect(user).toMatchObject({ isActive: false });
  });
});

test("a restore is refused for an active company and for one that the restored table does not have", async () => {
  const context = { live: storeOf(TABLE), restored: storeOf(SOURCE), clock };
  await expect(restoreCompany(context, other.companyId)).rejects.toThrow("is active");
  const { caller: late } = await newCompany(fresh());
  await suspend({ table: storeOf(TABLE).table, clock }, late.companyId);
  time.now += QUIET_MS;
  await expect(restoreCompany(context, late.companyId)).rejects.toThrow("has no company");
});
