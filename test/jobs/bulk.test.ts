/** Tests bulk jobs while calls fail, while users change records or control the job, and while several jobs of a company wait. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import type { JobContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { cancelJob, pauseJob, resumeJob } from "#shared/jobs/bulk/control.ts";
import { readJob } from "#shared/jobs/bulk/read.ts";
import { hasEnded, type StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { LEASE_MS, sweepJobs } from "#shared/jobs/job.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { rowVersionOf } from "#shared/prospects/record-version.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import { beginUndo, createAppointment, createNote, updateProspect } from "../harness/verbs.ts";
import * as bulk from "./bulk-stage.ts";
import { jobDeaths, jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

/** The number of the current test. It determines at which calls the test kills the job. */
let turn = 0;

const COUNT = bulk.SMALL_CHUNK + 2;

const versions = (rows: readonly StoredProspect[]): number[] => rows.map(({ version }) => version);
const twos = Array.from({ length: COUNT }, () => 2);

const untilEnded = (stage: bulk.Stage, job: JobMessage) => bulk.endOf(harness, now, stage, job);

async function undone(stage: bulk.Stage, { id, companyId }: JobMessage): Promise<StoredBulk> {
  const undo = await beginUndo(harness.sound(), bulk.silent, stage.caller, id, {});
  return untilEnded(stage, { kind: "bulk", companyId, id: undo.id });
}

const actionOf = ({ repId, statusIds, tagId }: bulk.Stage) => ({
  assignedToUserId: repId,
  statusId: statusIds[0] ?? null,
  addTagIds: [tagId],
});

async function begun() {
  const stage = await bulk.newStage(harness, COUNT);
  return { stage, job: await bulk.newJob(harness, stage, actionOf(stage)) };
}

/** Returns a context in which a job cannot store the results of a chunk. */
const unstorable = (): JobContext => {
  const { objects, ...context } = harness.sound();
  return { ...context, objects: { ...objects, put: () => Promise.reject(new Error("a fault of the code")) } };
};

test.each(jobDeaths)(
  "after a kill %s any call of the %s takes effect, the next execution changes each record once, and an undo restores each",
  { tags: "sized" },
  async (...death) => {
    const counted = await begun();
    const calls = await harness.killed(death, async () => {
      expect(await bulk.runOnce(harness.faulty(), counted.stage, counted.job)).toBe(true);
    });
    expect(calls).toBeGreaterThan(death[1] === "table" ? 15 : 1);
    for (const last of killPointsOf(calls, turn++)) {
      const { stage, job } = await begun();
      await harness.killed(death, () => bulk.runOnce(harness.faulty(), stage, job), last);
      const killed = await bulk.storedJob(harness, job);
      expect(bulk.unprocessed(killed)).toBeGreaterThanOrEqual(0);
      // A user changes a record between the executions. If the killed execution has already written this record, the job must not overwrite
      // the user's change.
      const before = await bulk.rowsOf(harness, stage);
      const [first = 0] = stage.ids;
      await updateProspect(harness.sound(), stage.caller, first, { currentStatusId: stage.statusIds[1], name: "user" });
      const touched = before[0]?.version === 2;
      const ended = await untilEnded(stage, job);
      expect(ended, `killed at call ${last}`).toMatchObject({ state: "completed", changed: COUNT });
      const rows = await bulk.rowsOf(harness, stage);
      expect(versions(rows), `killed at call ${last}`).toEqual([3, ...twos.slice(1)]);
      expect(rows[0]?.statusId).toBe(touched ? stage.statusIds[1] : stage.statusIds[0]);
      expect((await bulk.resultsOf(harness, job)).map(({ id }) => id)).toEqual(stage.ids);
      expect(await bulk.queueOf(harness, stage)).toMatchObject({ running: null, waiting: [], paused: [] });
      expect(await undone(stage, job)).toMatchObject({ state: "completed", changed: COUNT, skipped: 0 });
      const restored = await bulk.rowsOf(harness, stage);
      for (const row of restored)
        expect(row).toMatchObject({ assignedToUserId: null, assignedByUserId: null, tagIds: [] });
      expect(restored.map(({ statusId }) => statusId).slice(1)).toEqual(twos.slice(1).map(() => null));
      expect(restored[0]).toMatchObject({ name: "user", statusId: stage.statusIds[1] });
      expect(await checkIndex(harness.sound().table, job.companyId)).toEqual([]);
    }
  },
);

test("a job that was killed within a chunk settles the chunk before it is cancelled, so that its counts and its undo have each write", async () => {
  const { stage, job } = await begun();
  harness.bucket.plan = () => "before";
  expect(await bulk.runOnce(harness.sound(), stage, job)).toBe(false);
  harness.bucket.plan = () => undefined;
  expect(versions(await bulk.rowsOf(harness, stage))).toEqual([2, 2, 2, 2, 1, 1]);
  await cancelJob(harness.sound(), bulk.silent, stage.caller, job.id, bulk.impatient);
  expect(await untilEnded(stage, job)).toMatchObject({ state: "cancelled", changed: 4 });
  expect(await undone(stage, job)).toMatchObject({ total: 4, changed: 4 });
  const assignees = (await bulk.rowsOf(harness, stage)).map(({ assignedToUserId }) => assignedToUserId);
  expect(assignees).toEqual(twos.map(() => null));
});

test("a job that fails after ten executions without progress counts what they have written, so that its undo restores it", async () => {
  const { stage, job } = await begun();
  for (let run = 0; run < 10; run++) expect(await bulk.runOnce(unstorable(), stage, job)).toBe(false);
  await updateProspect(harness.sound(), stage.caller, stage.ids[0] ?? 0, { name: "user" });
  expect(await untilEnded(stage, job)).toMatchObject({ state: "failed", changed: 4, failed: 0, total: COUNT });
  expect(await undone(stage, job)).toMatchObject({ state: "completed", total: 4, changed: 4 });
  const rows = await bulk.rowsOf(harness, stage);
  expect(rows.map(({ assignedToUserId }) => assignedToUserId)).toEqual(twos.map(() => null));
});

test("a job whose chunk cannot even be settled fails nevertheless", async () => {
  const { stage, job } = await begun();
  for (let run = 0; run < 12; run++) await bulk.runOnce(unstorable(), stage, job);
  expect(await bulk.storedJob(harness, job)).toMatchObject({ state: "failed", changed: 0 });
  expect(await bulk.queueOf(harness, stage)).toMatchObject({ running: null });
});

test("an execution whose lease has expired writes nothing more", async () => {
  const { stage, job } = await begun();
  const context = harness.sound();
  const slow: typeof context.table = {
    ...context.table,
    write: async (write) => {
      const item = await context.table.write(write);
      // When the job has renewed its lease, the clock advances until 30 s of the lease remain. Changing a record can take 45 s, so the job
      // must not begin another record.
      if (item?.authorVersion !== undefined) now.ms += LEASE_MS - 30_000;
      return item;
    },
  };
  expect(await bulk.runOnce({ ...context, table: slow }, stage, job)).toBe(true);
  expect(versions(await bulk.rowsOf(harness, stage))).toEqual(twos.map(() => 1));
});

test("the undo of a deletion restores prospects with their appointments and the texts of their notes", async () => {
  const stage = await bulk.newStage(harness, 3);
  const context = harness.sound();
  const [first = 0] = stage.ids;
  await createNote(context, stage.caller, first, { body: "wants a zebra roof" });
  const appointment = { title: "Visit", startAt: "2030-02-01T00:00:00.000Z" };
  await createAppointment(context, stage.caller, first, appointment);
  const find = async (query: object) =>
    (await listProspects(harness.sound(), stage.caller, ListQuery.parse(query))).total;
  const job = await bulk.newJob(harness, stage, { delete: true });
  expect(await untilEnded(stage, job)).toMatchObject({ state: "completed", changed: 3 });
  expect(await find({})).toBe(0);
  await flush(context, job.companyId, { settleMs: 0 });
  expect(await undone(stage, job)).toMatchObject({ state: "completed", changed: 3 });
  expect(await find({})).toBe(3);
  expect(await find({ search: "zebra" })).toBe(1);
  const [row] = await bulk.rowsOf(harness, stage);
  const { agendaUntil = "", companyId, assignedToUserId } = row ?? expect.fail("no row");
  const agenda = await context.table.get(attachedKeys.agenda(companyId, assignedToUserId, agendaUntil, first));
  expect(agenda).toBeDefined();
  expect(await checkIndex(context.table, job.companyId)).toEqual([]);
});

test("a company has one running job and twenty that wait; each runs in its turn, and a paused one waits for its resume", async () => {
  const stage = await bulk.newStage(harness, 1);
  const jobs: JobMessage[] = [];
  for (let i = 0; i < 21; i++)
    jobs.push(await bulk.newJob(harness, stage, { statusId: stage.statusIds[i % 2] ?? null }));
  await expect(bulk.newJob(harness, stage, { delete: true })).rejects.toThrow("may have 20 jobs");
  const [one, two, three, ...others] = jobs;
  if (one === undefined || two === undefined || three === undefined) throw new Error("no jobs");
  const context = harness.sound();
  // `two` waits in the company's queue, because `one` is running. An execution of `two` must do nothing, even if a queue message has
  // started it.
  await bulk.runOnce(context, stage, two);
  expect(await bulk.storedJob(harness, two)).toMatchObject({ state: "queued", changed: 0 });
  expect(await pauseJob(context, bulk.silent, stage.caller, one.id, bulk.impatient)).toMatchObject({ state: "paused" });
  expect(await cancelJob(context, bulk.silent, stage.caller, three.id, bulk.impatient)).toMatchObject({
    state: "cancelled",
  });
  expect(await bulk.queueOf(harness, stage)).toMatchObject({ running: two.id, paused: [one.id] });
  for (const job of [two, ...others]) {
    expect((await bulk.queueOf(harness, stage)).running).toBe(job.id);
    expect(await untilEnded(stage, job)).toMatchObject({ state: "completed" });
  }
  expect(await bulk.queueOf(harness, stage)).toMatchObject({ running: null, waiting: [], paused: [one.id] });
  expect(await resumeJob(context, bulk.silent, stage.caller, one.id)).toMatchObject({ state: "queued" });
  expect(await untilEnded(stage, one)).toMatchObject({ state: "completed" });
  await expect(resumeJob(context, bulk.silent, stage.caller, one.id)).rejects.toThrow("completed already");
});

test("the sweeper finds a job whose message was lost, and cancels one that is paused for a month", async () => {
  const stage = await bulk.newStage(harness, 2);
  const lost = await bulk.newJob(harness, stage, actionOf(stage));
  const waiting = await bulk.newJob(harness, stage, { delete: true });
  const sweep = async (afterMs: number): Promise<number[]> => {
    now.ms += afterMs;
    const sent: JobMessage[] = [];
    const jobs = { send: async (message: JobMessage) => void sent.push(message), returnIn: async () => undefined };
    await sweepJobs({ ...harness.sound(), jobs });
    return sent.filter(({ companyId }) => companyId === lost.companyId).map(({ id }) => id);
  };
  expect(await sweep(60_000)).toEqual([lost.id]);
  await untilEnded(stage, lost);
  expect(await sweep(60_000)).toEqual([waiting.id]);
  await pauseJob(harness.sound(), bulk.silent, stage.caller, waiting.id, bulk.impatient);
  expect(await sweep(24 * 3_600_000)).toEqual([]);
  expect(await sweep(30 * 24 * 3_600_000)).toEqual([waiting.id]);
  await bulk.runOnce(harness.sound(), stage, waiting);
  expect(await bulk.storedJob(harness, waiting)).toMatchObject({ state: "cancelled", changed: 0 });
});

test("the counts always sum to the total, also after kills, pauses and cancellations", { tags: "sized" }, async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ run: fc.nat(80) }) },
    fc.constantFrom("pause" as const, "resume" as const, "cancel" as const, "edit" as const),
  );
  const law = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
    const { stage, job } = await begun();
    const context = harness.sound();
    let handled = 0;
    for (const one of steps) {
      now.ms += LEASE_MS + 1;
      if (typeof one === "object") {
        db.plan((_operation, number) => (number < one.run ? pass : serverError));
        await bulk.runOnce(harness.faulty(), stage, job);
        db.plan(() => pass);
      } else if (one === "edit") {
        await updateProspect(context, stage.caller, stage.ids[0] ?? 0, { name: `edit ${now.ms}` });
      } else {
        const control = { pause: pauseJob, resume: resumeJob, cancel: cancelJob }[one];
        await control(context, bulk.silent, stage.caller, job.id, bulk.impatient).catch(() => undefined);
      }
      const stored = await bulk.storedJob(harness, job);
      const left = bulk.unprocessed(stored);
      expect(left).toBeGreaterThanOrEqual(0);
      // Each handled record must have exactly one result, and no result may be lost.
      expect((await bulk.resultsOf(harness, job)).length).toBe(stored.total - left);
      expect(stored.total - left).toBeGreaterThanOrEqual(handled);
      handled = stored.total - left;
    }
    await resumeJob(context, bulk.silent, stage.caller, job.id).catch(() => undefined);
    const ended = await untilEnded(stage, job);
    // The rows of the records that the job counts as changed, and no other rows, must contain the id of the job.
    const marked = (await bulk.rowsOf(harness, stage)).filter(({ bulk }) => bulk?.jobId === job.id);
    expect(marked).toHaveLength(ended.changed);
    expect((await bulk.queueOf(harness, stage)).running).toBe(null);
  });
  await fc.assert(law, { numRuns: sized({ short: 5, wide: 150 }) });
});

test("an undo restores no prospect that a device has deleted, and the repeated operation stays a duplicate", async () => {
  const stage = await bulk.newStage(harness, 2);
  const [first] = stage.ids;
  const operation = { opId: randomUUID(), type: "prospect.delete", id: first, fields: {} };
  const push = async () => {
    const batch = { deviceId: "tablet", operations: [operation] };
    const { results } = await applyBatch({ context: harness.sound(), caller: stage.caller, requestId: "r" }, batch);
    const { outcome, version = null } = results[0] ?? expect.fail();
    return [outcome, version === null ? null : rowVersionOf(version)];
  };
  const areDeleted = async () => (await bulk.rowsOf(harness, stage)).map(({ deletedAt }) => deletedAt !== undefined);

  const deleted = async () => {
    const job = await bulk.newJob(harness, stage, { delete: true });
    await untilEnded(stage, job);
    return job;
  };

  const job = await deleted();
  expect(await push()).toEqual(["rejected", null]);
  await undone(stage, job);
  expect(await areDeleted()).toEqual([false, false]);

  // The prospect has version 1 after its creation. The job's deletion and its undo have written versions 2 and 3, so the operation of the
  // device writes version 4.
  expect(await push()).toEqual(["applied", 4]);
  const again = await deleted();
  expect(await areDeleted()).toEqual([true, true]);
  await undone(stage, again);
  expect(await areDeleted()).toEqual([true, false]);
  expect(await push()).toEqual(["duplicate", 4]);
});

/** Reads the job as a client does, and expects that its counts sum to the total. Returns the number of records that the job has handled. */
async function handled({ caller }: bulk.Stage, { id }: JobMessage): Promise<number> {
  const { total, changed, unchanged, skipped, failed, unprocessed } = await readJob(harness.sound(), caller, id);
  expect(changed + unchanged + skipped + failed + unprocessed).toBe(total);
  expect(unprocessed).toBeGreaterThanOrEqual(0);
  return total - unprocessed;
}

const isStopped = (stored: StoredBulk): boolean => hasEnded(stored) || stored.state === "paused";
const untilStopped = (stage: bulk.Stage, job: JobMessage) =>
  bulk.endOf(harness, now, stage, job, { isOver: isStopped });

test("at each call of a job to the table, a client sees counts that sum to the total and never decrease", async () => {
  const { stage, job } = await begun();
  const seen: number[] = [];
  db.plan(() => ({ kind: "late", meanwhile: async () => seen.push(await handled(stage, job)) }));
  expect(await bulk.runOnce(harness.faulty(), stage, job)).toBe(true);
  expect(new Set(seen)).toEqual(new Set([0, bulk.SMALL_CHUNK, COUNT]));
  expect(await handled(stage, job)).toBe(COUNT);
  expect((await bulk.storedJob(harness, job)).state).toBe("completed");
});

const controls = {
  pause: [pauseJob],
  cancel: [cancelJob],
  "pause and resume": [pauseJob, resumeJob],
  "pause and cancel": [pauseJob, cancelJob],
} as const;

test.each(Object.entries(controls))(
  "a request for %s at any call of the job leaves each record written once and counted once",
  { tags: "sized" },
  async (name, requests) => {
    const counted = await begun();
    db.plan(() => pass);
    expect(await bulk.runOnce(harness.faulty(), counted.stage, counted.job)).toBe(true);
    const calls = db.calls.length;
    for (const at of killPointsOf(calls, Object.keys(controls).indexOf(name))) {
      db.plan(() => pass);
      const { stage, job } = await begun();
      const meanwhile = async (): Promise<void> => {
        for (const request of requests) {
          // If the job has already ended, the service refuses the request. The test ignores this error.
          await request(harness.sound(), bulk.silent, stage.caller, job.id, bulk.impatient).catch(() => undefined);
          await handled(stage, job);
        }
      };
      db.plan((_operation, number) => (number === at ? { kind: at % 2 === 0 ? "early" : "late", meanwhile } : pass));
      expect(await bulk.runOnce(harness.faulty(), stage, job)).toBe(true);
      let stopped = await untilStopped(stage, job);
      const marked = async () => (await bulk.rowsOf(harness, stage)).filter(({ bulk }) => bulk?.jobId === job.id);
      expect(await marked(), `call ${at}`).toHaveLength(stopped.changed);
      expect(await bulk.resultsOf(harness, job)).toHaveLength(stopped.changed);
      if (stopped.state === "paused") {
        expect(await bulk.queueOf(harness, stage)).toMatchObject({ running: null, waiting: [], paused: [job.id] });
        await resumeJob(harness.sound(), bulk.silent, stage.caller, job.id);
        stopped = await untilStopped(stage, job);
      }
      expect(stopped.state === "cancelled" || stopped.changed === COUNT, `call ${at}`).toBe(true);
      expect(await marked()).toHaveLength(stopped.changed);
      expect((await bulk.rowsOf(harness, stage)).every(({ version }) => version <= 2)).toBe(true);
      expect(await bulk.queueOf(harness, stage)).toMatchObject({ running: null, waiting: [], paused: [] });
    }
  },
);
