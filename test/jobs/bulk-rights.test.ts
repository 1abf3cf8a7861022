/** Tests that after a request has taken a right from a user and is answered, the user's bulk job writes nothing that needs this right. */

import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { untilJobsHaveRights } from "#shared/jobs/bulk/rights.ts";
import { LEASE_MS } from "#shared/jobs/job.ts";
import type { UserPatch } from "#shared/reference/user.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { killPointsOf } from "../harness/kills.ts";
import { beginUndo, disableUser, updateUser } from "../harness/verbs.ts";
import { endOf, newJob, newStage, rowsOf, runOnce, type Stage, silent, storedJob, unprocessed } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const COUNT = 6;
const PATIENT = { tries: 5_000, ms: 1 };

const repOf = ({ caller, repId }: Stage): Caller => ({
  companyId: caller.companyId,
  userId: repId,
  role: "sales",
  permissions: ["canManageProspects", "canViewAllProspects"],
});

const grant = ({ caller, repId }: Stage, permissions: NonNullable<UserPatch["permissions"]>): Promise<unknown> =>
  updateUser(harness.sound(), caller, repId, { permissions });

async function jobOfRep() {
  const stage = await newStage(harness, COUNT);
  const rep = repOf(stage);
  await grant(stage, [...rep.permissions]);
  const job = await newJob(harness, stage, { statusId: stage.statusIds[0] ?? null }, rep);
  return { stage, job };
}

const written = async (stage: Stage): Promise<number> =>
  (await rowsOf(harness, stage)).filter(({ version }) => version > 1).length;

interface Revocation {
  isAnswered: boolean;
  /**
   * Resolves when two things have happened: the new rights are stored, and the request is answered or has found out that it must wait for
   * the job.
   */
  readonly isUnderWay: Promise<void>;
  readonly answer: Promise<void>;
}

/** Takes a right from the rep and waits for the rep's running job, as the endpoint that changes a user does. */
function revoke({ caller, repId }: Stage, jobId: number): Revocation {
  const context = harness.sound();
  const { promise: isUnderWay, resolve } = Promise.withResolvers<void>();
  const jobKey = keys.bulkJob(caller.companyId, jobId);
  const table: typeof context.table = {
    ...context.table,
    get: async (key) => {
      const item = await context.table.get(key);
      if (key.pk === jobKey.pk && key.sk === jobKey.sk) resolve();
      return item;
    },
  };
  const request = async (): Promise<void> => {
    await updateUser(context, caller, repId, { permissions: ["canViewAllProspects"] });
    await untilJobsHaveRights({ ...context, table }, caller.companyId, repId, PATIENT);
    revocation.isAnswered = true;
    resolve();
  };
  const revocation: Revocation = { isAnswered: false, isUnderWay, answer: request() };
  return revocation;
}

test("wherever a job is when its user loses the right, no write of the job follows the answer to the change of rights", {
  tags: "sized",
}, async () => {
  const counted = await jobOfRep();
  db.plan(() => pass);
  expect(await runOnce(harness.faulty(), counted.stage, counted.job)).toBe(true);
  const calls = db.calls.length;
  expect(calls).toBeGreaterThan(15);
  for (const [turn, kind] of (["early", "late"] as const).entries()) {
    for (const at of killPointsOf(calls, turn)) {
      db.plan(() => pass);
      const { stage, job } = await jobOfRep();
      let revocation: Revocation | undefined;
      const late: string[] = [];
      const rows = keys.prospect(job.companyId, stage.ids[0] ?? 0).pk;
      let writes = 0;
      db.plan((operation, number, body) => {
        const writesProspect = operation === "TransactWriteItems" && JSON.stringify(body).includes(rows);
        if (writesProspect) writes++;
        if (writesProspect && revocation?.isAnswered === true) late.push(`call ${number}`);
        if (number !== at) return pass;
        const meanwhile = async (): Promise<void> => {
          revocation = revoke(stage, job.id);
          await revocation.isUnderWay;
          if (kind === "early" && writesProspect && revocation.isAnswered) late.push(`call ${number}`);
        };
        return { kind, meanwhile };
      });
      expect(await runOnce(harness.faulty(), stage, job)).toBe(true);
      await revocation?.answer;
      expect(late, `${kind}, call ${at}`).toEqual([]);
      const stored = await storedJob(harness, job);
      const { state, changed, skipped } = stored;
      expect(writes).toBe(changed);
      expect(await written(stage)).toBe(changed);
      expect(["failed", "completed"]).toContain(state);
      expect(skipped).toBe(0);
      expect(state === "completed" ? changed : unprocessed(stored)).toBeGreaterThan(0);
    }
  }
});

test("if the job's function was killed, the change of rights is answered only after the job's lease has expired", async () => {
  const { stage, job } = await jobOfRep();
  const { caller, repId } = stage;
  db.plan((operation) => (operation === "TransactWriteItems" ? serverError : pass));
  const context = harness.sound();
  // The function that executes the job is killed before it can release the lease of the job.
  const dying = harness.faulty();
  const table = {
    ...dying.table,
    write: async (write: Parameters<typeof dying.table.write>[0]) => {
      if ("update" in write && write.change.set?.runs !== undefined && write.change.set.state === undefined)
        throw new Error("killed");
      return dying.table.write(write);
    },
  };
  expect(await runOnce({ ...dying, table }, stage, job)).toBe(false);
  db.plan(() => pass);
  const wait = () => untilJobsHaveRights(context, caller.companyId, repId, { tries: 2, ms: 1 });
  await disableUser(context, caller, repId);
  await expect(wait()).rejects.toMatchObject({ code: "unavailable" });
  now.ms += LEASE_MS;
  await wait();
  await runOnce(context, stage, job);
  expect(await storedJob(harness, job)).toMatchObject({ state: "failed", changed: 0, skipped: 0 });
  expect(await written(stage)).toBe(0);
});

test("a user who loses the right after a kill gets a job that counts what the killed execution has written", async () => {
  const { stage, job } = await jobOfRep();
  let writes = 0;
  db.plan((operation) => (operation === "TransactWriteItems" && ++writes > 2 ? serverError : pass));
  expect(await runOnce(harness.faulty(), stage, job)).toBe(false);
  db.plan(() => pass);
  await grant(stage, ["canViewAllProspects"]);
  now.ms += LEASE_MS + 1;
  const ended = await endOf(harness, now, stage, job);
  expect(ended).toMatchObject({ state: "failed", changed: 2, skipped: 0, failed: 0 });
  expect(unprocessed(ended)).toBe(4);
  const undo = await beginUndo(harness.sound(), silent, stage.caller, job.id, {});
  expect(await endOf(harness, now, stage, { ...job, id: undo.id })).toMatchObject({ total: 2, changed: 2 });
});

test("a job that is killed after its user has lost the right does not end as completed with unprocessed records", async () => {
  const ends = new Set<string>();
  for (let last = 1, isKilled = true; isKilled; last++) {
    const { stage, job } = await jobOfRep();
    await grant(stage, ["canViewAllProspects"]);
    isKilled = false;
    db.plan((_operation, number) => {
      isKilled ||= number > last;
      return number <= last ? pass : serverError;
    });
    await runOnce(harness.faulty(), stage, job);
    db.plan(() => pass);
    await grant(stage, ["canManageProspects", "canViewAllProspects"]);
    const ended = await endOf(harness, now, stage, job);
    ends.add(ended.state);
    expect(unprocessed(ended) === 0, `killed after call ${last}`).toBe(ended.state === "completed");
  }
  expect([...ends].sort()).toEqual(["completed", "failed"]);
});

test("a change of rights waits only for a running job of the same user", async () => {
  const { stage, job } = await jobOfRep();
  const { caller, repId } = stage;
  const context = harness.sound();
  const looks = async (userId: number): Promise<number> => {
    const wait = () => untilJobsHaveRights(context, caller.companyId, userId, { tries: 0, ms: 0 });
    return (await metered(wait)).usage.requests;
  };
  // `untilJobsHaveRights` reads three rows: the user, the company's queue of jobs, and the job that may be running. When no job is running
  // any more, it reads only the first two.
  expect(await looks(repId)).toBe(3);
  await runOnce(context, stage, job, () => 0);
  expect(await looks(repId)).toBe(3);
  expect(await looks(caller.userId)).toBe(3);
  await runOnce(context, stage, job);
  expect(await looks(repId)).toBe(2);
});
