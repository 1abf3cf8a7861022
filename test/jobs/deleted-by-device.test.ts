/** Tests bulk deletions, and their undo, of prospects that an operation of a device also deletes. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { rowVersionOf } from "#shared/prospects/record-version.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { beginUndo } from "../harness/verbs.ts";
import { endOf, newJob, newStage, rowsOf, type Stage, silent } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { now, harness } = jobTests();

async function deleteAll(stage: Stage) {
  const job = await newJob(harness, stage, { delete: true });
  await endOf(harness, now, stage, job);
  return job;
}

async function restoreAll(stage: Stage, job: { readonly companyId: number; readonly id: number }): Promise<void> {
  const { id } = await beginUndo(harness.sound(), silent, stage.caller, job.id, {});
  await endOf(harness, now, stage, { kind: "bulk", companyId: job.companyId, id });
}

test("an undo restores no prospect that a device has deleted, and the repeated operation stays a duplicate", async () => {
  const stage = await newStage(harness, 2);
  const [first] = stage.ids;
  const operation = { opId: randomUUID(), type: "prospect.delete", id: first, fields: {} };
  const push = async () => {
    const batch = { deviceId: "tablet", operations: [operation] };
    const { results } = await applyBatch({ context: harness.sound(), caller: stage.caller, requestId: "r" }, batch);
    const { outcome, version = null } = results[0] ?? expect.fail();
    return [outcome, version === null ? null : rowVersionOf(version)];
  };
  const areDeleted = async () => (await rowsOf(harness, stage)).map(({ deletedAt }) => deletedAt !== undefined);

  const job = await deleteAll(stage);
  expect(await push()).toEqual(["rejected", null]);
  await restoreAll(stage, job);
  expect(await areDeleted()).toEqual([false, false]);

  // The prospect has version 1 after its creation. The job's deletion and its undo have written versions 2 and 3, so the operation of the
  // device writes version 4.
  expect(await push()).toEqual(["applied", 4]);
  const again = await deleteAll(stage);
  expect(await areDeleted()).toEqual([true, true]);
  await restoreAll(stage, again);
  expect(await areDeleted()).toEqual([true, false]);
  expect(await push()).toEqual(["duplicate", 4]);
});
