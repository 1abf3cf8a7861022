/** Tests that a job that was begun with an API key has at most the present rights of the key. */
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { ringWrite, StoredKeyRing } from "#shared/auth/key-ring.ts";
import type { Permission } from "#shared/auth/user-schema.ts";
import * as keys from "#shared/db/keys.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import { exportKeys } from "#shared/jobs/s3-keys.ts";
import { beginExport, createAccount, createKey, revokeKey } from "../harness/verbs.ts";
import { endOf, newJob, newStage, rowsOf, silent } from "../jobs/bulk-stage.ts";
import { jobTests } from "../jobs/faulty-jobs.ts";

const { now, harness } = jobTests();
const COUNT = 3;

/** Creates an account with a key. `lower` reduces the creator's rights to those of a sales user with the given permissions. */
async function program() {
  const stage = await newStage(harness, COUNT);
  const context = harness.sound();
  const { companyId } = stage.caller;
  const body = { name: "program", role: "admin" as const, permissions: [] };
  const { id: userId, sub } = await createAccount(context, stage.caller, body);
  const { id } = await createKey(context, stage.caller, userId, { name: "k", scopes: ["prospects:write"] });
  const lower = async (permissions: Permission[]): Promise<void> => {
    const ring = StoredKeyRing.parse(await context.table.get(keys.keyRing(sub)));
    const lowered = ring.keys.map((key) => ({ ...key, creatorRights: { role: "sales" as const, permissions } }));
    await context.table.transact([ringWrite(ring, { ...ring, keys: lowered }, ring.updatedAt)]);
  };
  const by: Caller = { companyId, userId, role: "admin", permissions: [], key: { id, scopes: [] } };
  return { stage, by, lower, revoke: () => revokeKey(context, stage.caller, userId, id) };
}

test("a bulk job changes nothing that the key may not change any more", async () => {
  const { stage, by, lower } = await program();
  const action = { statusId: stage.statusIds[0] ?? null };
  const changedAfter = async (loss: () => Promise<unknown>) => {
    const job = await newJob(harness, stage, action, by);
    await loss();
    await endOf(harness, now, stage, job);
    return (await rowsOf(harness, stage)).filter(({ version }) => version > 1).length;
  };
  expect(await changedAfter(() => lower(["canManageProspects"]))).toBe(0);
  expect(await changedAfter(() => lower(["canViewAllProspects"]))).toBe(0);
  expect(await changedAfter(() => lower(["canViewAllProspects", "canManageProspects"]))).toBe(COUNT);

  const other = await program();
  const job = await newJob(harness, other.stage, action, other.by);
  await other.revoke();
  await endOf(harness, now, other.stage, job);
  expect((await rowsOf(harness, other.stage)).filter(({ version }) => version > 1)).toEqual([]);
});

test("an export contains only prospects that the key may see", async () => {
  const { by, lower } = await program();
  const linesOf = async (caller: Caller) => {
    const { id } = await beginExport(harness.sound(), { ...silent, returnIn: async () => undefined }, caller, {});
    await harness.run(harness.sound(), { kind: "export", companyId: caller.companyId, id });
    const row = await harness.sound().table.get(keys.export(caller.companyId, id));
    expect(StoredExport.parse(row).state).toBe("completed");
    const file = harness.bucket.files.get(exportKeys.file({ ...caller, id })) ?? expect.fail("no file");
    return gunzipSync(file).toString().trimEnd().split("\r\n").length - 1;
  };
  expect(await linesOf(by)).toBe(COUNT);
  await lower([]);
  expect(await linesOf({ ...by, role: "sales", permissions: [] })).toBe(0);
});

test("an import fails if the key may not import any more", async () => {
  const { by, lower } = await program();
  const stateAfter = async (loss: () => Promise<unknown>) => {
    const job = await harness.uploaded(by, Buffer.from("name\nAnn\n"));
    await loss();
    await harness.run(harness.sound(), job);
    return StoredImport.parse(await harness.sound().table.get(keys.import(by.companyId, job.id))).state;
  };
  expect(await stateAfter(async () => undefined)).toBe("completed");
  expect(await stateAfter(() => lower(["canManageProspects"]))).toBe("completed");
  expect(await stateAfter(() => lower(["canViewAllProspects"]))).toBe("failed");
});
