/** Tests that a job begun by a key has at most the rights of the key, although the service account has more. */
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { Permission } from "#shared/auth/user-schema.ts";
import * as keys from "#shared/db/keys.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import { exportKeys } from "#shared/jobs/s3-keys.ts";
import { beginExport, createAccount } from "../harness/verbs.ts";
import { endOf, newJob, newStage, rowsOf, silent } from "../jobs/bulk-stage.ts";
import { jobTests } from "../jobs/faulty-jobs.ts";

const { now, harness } = jobTests();
const COUNT = 3;

/** An account with the role admin, and a key of it whose creator is a sales user with these permissions. */
async function program(permissions: Permission[]) {
  const stage = await newStage(harness, COUNT);
  const { companyId } = stage.caller;
  const body = { name: "program", role: "admin" as const, permissions: [] };
  const { id: userId } = await createAccount(harness.sound(), stage.caller, body);
  const by: Caller = { companyId, userId, role: "sales", permissions, key: { id: "4fK2xQ9a", scopes: [] } };
  return { stage, by, person: { companyId, userId, role: "admin", permissions: [] } satisfies Caller };
}

test("a bulk job changes nothing that the key may not change", async () => {
  const { stage, by, person } = await program(["canManageProspects"]);
  const action = { statusId: stage.statusIds[0] ?? null };
  const changed = async (caller: Caller) => {
    const job = await newJob(harness, stage, action, caller);
    await endOf(harness, now, stage, job);
    return (await rowsOf(harness, stage)).filter(({ version }) => version > 1).length;
  };
  expect(await changed(by)).toBe(0);
  expect(await changed({ ...by, permissions: ["canViewAllProspects"] })).toBe(0);
  expect(await changed(person)).toBe(COUNT);
});

test("an export contains only prospects that the key may see", async () => {
  const { by, person } = await program([]);
  const linesOf = async (caller: Caller) => {
    const { id } = await beginExport(harness.sound(), { ...silent, returnIn: async () => undefined }, caller, {});
    await harness.run(harness.sound(), { kind: "export", companyId: caller.companyId, id });
    const row = await harness.sound().table.get(keys.export(caller.companyId, id));
    expect(StoredExport.parse(row).state).toBe("completed");
    const file = harness.bucket.files.get(exportKeys.file(caller.companyId, id)) ?? expect.fail("no file");
    return gunzipSync(file).toString().trimEnd().split("\r\n").length - 1;
  };
  expect(await linesOf(by)).toBe(0);
  expect(await linesOf(person)).toBe(COUNT);
});

test("an import fails if the key may not import", async () => {
  const { by, person } = await program(["canViewAllProspects"]);
  const stateAfter = async (caller: Caller) => {
    const job = await harness.uploaded(caller, Buffer.from("name\nAnn\n"));
    await harness.run(harness.sound(), job);
    return StoredImport.parse(await harness.sound().table.get(keys.import(caller.companyId, job.id))).state;
  };
  expect(await stateAfter(by)).toBe("failed");
  expect(await stateAfter({ ...by, permissions: ["canManageProspects"] })).toBe("completed");
  expect(await stateAfter(person)).toBe("completed");
});
