/** Tests bulk jobs that were running at the restore point of a table. A restore does not change the files in the bucket. */
import { describe, expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { systemClock } from "#shared/clock.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import { readJob } from "#shared/jobs/bulk/read.ts";
import { hasEnded, type StoredAction, type StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { LEASE_MS, sweepJobs } from "#shared/jobs/job.ts";
import { QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { suspend } from "../../../infra/cli/company/suspension.ts";
import { restoreCompany } from "../../../infra/cli/restore/company.ts";
import { restoreWholeTable } from "../../../infra/cli/restore/whole-table.ts";
import { TABLE } from "../../harness/faulty-dynamodb.ts";
import { beginUndo, updateProspect } from "../../harness/verbs.ts";
import {
  newJob,
  newStage,
  resultsOf,
  rowsOf,
  runOnce,
  SMALL_CHUNK,
  type Stage,
  storedJob,
} from "../../jobs/bulk-stage.ts";
import { memoryBucket } from "../../jobs/faulty-jobs.ts";
import { restorePoint, restoreScene } from "./restore-scene.ts";

const RESTORED = "Restored-bulk";
const { context, storeOf } = await restoreScene();
const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
const clock = { now: () => now.ms };
/** The live table and the restored table use the same bucket, as a service does before and after it is switched to the restored table. */
const bucket = memoryBucket();
const silent = { send: async () => undefined, returnIn: async () => undefined };

/** Returns a service on the table with this name. Each call of `sound` returns the context of a new function with empty caches. */
const on = (name: string) => ({
  sound: (): JobContext => ({ ...contextOn(storeOf(name).table, clock), objects: bucket, jobs: silent }),
});
const live = on(TABLE);
const restored = on(RESTORED);

async function untilEnded(service: typeof live, stage: Stage, job: JobMessage): Promise<StoredBulk> {
  for (let runs = 0; runs < 20; runs++) {
    const stored = await storedJob(service, job);
    if (hasEnded(stored)) return stored;
    now.ms += LEASE_MS + 1_000;
    await runOnce(service.sound(), stage, job);
  }
  throw new Error("the job never ends");
}

const runChunks = async (stage: Stage, job: JobMessage, chunks: number): Promise<void> => {
  let asked = 0;
  await runOnce(live.sound(), stage, job, () => (asked++ < chunks ? 300_000 : 0));
};

const undoOf = async (service: typeof live, { caller }: Stage, { companyId, id }: JobMessage): Promise<JobMessage> => {
  const undo = await beginUndo(service.sound(), silent, caller, id, {});
  return { kind: "bulk", companyId, id: undo.id };
};

const COUNT = 3 * SMALL_CHUNK + 2;
const versions = async (service: typeof live, stage: Stage): Promise<number[]> =>
  (await rowsOf(service, stage)).map(({ version }) => version);
const repeated = <T>(value: T, count: number): T[] => Array.from({ length: count }, () => value);
const assign = ({ repId }: Stage): StoredAction => ({ assignedToUserId: repId });
const tag = ({ tagId }: Stage): StoredAction => ({ addTagIds: [tagId] });

/** Returns the outcomes of the handled records. They must be the first records of the job, and have exactly one result each. */
async function outcomesOf(service: typeof live, { caller, ids }: Stage, job: JobMessage): Promise<string[]> {
  const shown = await readJob(service.sound(), caller, job.id);
  expect(shown.changed + shown.unchanged + shown.skipped + shown.failed + shown.unprocessed).toBe(shown.total);
  const results = await resultsOf(service, job);
  expect(results.map(({ id }) => id)).toEqual(ids.slice(0, shown.total - shown.unprocessed));
  return results.map(({ outcome }) => outcome);
}

async function newRunning() {
  const stage = await newStage(live, COUNT);
  const ended = await newJob(live, stage, tag(stage));
  await untilEnded(live, stage, ended);
  const job = await newJob(live, stage, assign(stage));
  await runChunks(stage, job, 2);
  // The function is killed after it has written the records of the third chunk, and before it stores their results.
  bucket.plan = () => "before";
  now.ms += LEASE_MS + 1_000;
  expect(await runOnce(live.sound(), stage, job)).toBe(false);
  bucket.plan = () => undefined;
  return { stage, ended, job };
}

async function newUndoing() {
  const stage = await newStage(live, COUNT);
  const job = await newJob(live, stage, assign(stage));
  await untilEnded(live, stage, job);
  const undo = await undoOf(live, stage, job);
  await runChunks(stage, undo, 2);
  return { stage, job, undo };
}

/** A job has four chunks. In each company except `late`, a job or its undo has handled two of them at the restore point. */
await restorePoint();
const running = await newRunning();
const undoing = await newUndoing();
/** A company that is restored alone, into the live table. */
const alone = await newRunning();
const lateStage = await newStage(live, 2);
const at = await restorePoint();

// After the restore point, all jobs end in the live table. Users also change records that the jobs had not handled at the restore point.
for (const { stage } of [running, undoing, alone]) {
  const last = stage.ids.at(-1) ?? 0;
  await updateProspect(live.sound(), stage.caller, last, { assignedToUserId: stage.caller.userId });
}
expect(await untilEnded(live, running.stage, running.job)).toMatchObject({ state: "completed", changed: COUNT });
expect(await untilEnded(live, undoing.stage, undoing.undo)).toMatchObject({ changed: COUNT - 1, skipped: 1 });
expect(await untilEnded(live, alone.stage, alone.job)).toMatchObject({ state: "completed", changed: COUNT });
const late = { stage: lateStage, job: await newJob(live, lateStage, assign(lateStage)) };
await untilEnded(live, lateStage, late.job);

const carry = { live: storeOf(TABLE), restored: storeOf(RESTORED), clock: systemClock };
const report = await restoreWholeTable(context, { source: TABLE, at }, carry);

describe("in the restored table", () => {
  test("a job that ran at the point handles each of its records once, and it and an earlier job can be undone", async () => {
    const { stage, ended, job } = running;
    expect(await outcomesOf(restored, stage, job)).toEqual(repeated("changed", 2 * SMALL_CHUNK));
    expect(await versions(restored, stage)).toEqual([...repeated(3, 3 * SMALL_CHUNK), 2, 2]);
    const sent: JobMessage[] = [];
    const jobs = { ...silent, send: async (message: JobMessage) => void sent.push(message) };
    await sweepJobs({ ...restored.sound(), jobs });
    expect(sent).toContainEqual(job);
    expect(await untilEnded(restored, stage, job)).toMatchObject({ state: "completed", changed: COUNT });
    expect(await versions(restored, stage)).toEqual(repeated(3, COUNT));
    expect(await outcomesOf(restored, stage, job)).toEqual(repeated("changed", COUNT));

    const undo = await undoOf(restored, stage, job);
    expect(await untilEnded(restored, stage, undo)).toMatchObject({ state: "completed", changed: COUNT, skipped: 0 });
    const earlier = await undoOf(restored, stage, ended);
    expect(await untilEnded(restored, stage, earlier)).toMatchObject({ changed: COUNT, skipped: 0 });
    for (const row of await rowsOf(restored, stage)) expect(row).toMatchObject({ assignedToUserId: null, tagIds: [] });
  });

  test("an undo that ran at the point restores each record once", async () => {
    const { stage, undo } = undoing;
    expect(await storedJob(restored, undo)).toMatchObject({ state: "running", changed: 2 * SMALL_CHUNK });
    expect(await untilEnded(restored, stage, undo)).toMatchObject({ state: "completed", changed: COUNT, skipped: 0 });
    expect(await versions(restored, stage)).toEqual(repeated(3, COUNT));
    expect(await outcomesOf(restored, stage, undo)).toEqual(repeated("changed", COUNT));
    for (const row of await rowsOf(restored, stage)) expect(row).toMatchObject({ assignedToUserId: null });
  });

  test("a job that began after the point does not exist, and its message and results harm no other job", async () => {
    const { stage, job } = late;
    expect(await runOnce(restored.sound(), stage, job)).toBe(true);
    await expect(readJob(restored.sound(), stage.caller, job.id)).rejects.toMatchObject({ code: "not_found" });
    expect(await versions(restored, stage)).toEqual([1, 1]);
    const next = await newJob(restored, stage, tag(stage));
    expect(next.id).toBeGreaterThan(job.id);
    expect(await outcomesOf(restored, stage, next)).toEqual([]);
    expect(await untilEnded(restored, stage, next)).toMatchObject({ state: "completed", changed: 2 });
  });
});

test("the command lists the jobs that the service continues", () => {
  const lineOf = ({ companyId, id }: JobMessage, state: string): string => `company ${companyId}: bulk ${id}, ${state}`;
  const continued = [running.job, undoing.undo, alone.job].map((job) => lineOf(job, "running"));
  expect(report.continuedJobs).toEqual(continued.toSorted());
});

test("if only one company is restored, its job does not run again, and its undo restores the records that the job had written at the point", async () => {
  const { stage, job } = alone;
  const { companyId } = stage.caller;
  await suspend({ table: live.sound().table, clock }, companyId);
  now.ms += QUIET_MS;
  const tables = { live: storeOf(TABLE), restored: storeOf(RESTORED) };
  expect((await restoreCompany({ ...tables, clock, settleMs: 1 }, companyId)).faults).toEqual([]);
  const atPoint = [...repeated(stage.repId, 3 * SMALL_CHUNK), null, null];
  expect((await rowsOf(live, stage)).map(({ assignedToUserId }) => assignedToUserId)).toEqual(atPoint);
  await runOnce(live.sound(), stage, job);
  expect((await rowsOf(live, stage)).map(({ assignedToUserId }) => assignedToUserId)).toEqual(atPoint);
  const undo = await undoOf(live, stage, job);
  expect(await untilEnded(live, stage, undo)).toMatchObject({ changed: 3 * SMALL_CHUNK, skipped: 2 });
  for (const row of await rowsOf(live, stage)) expect(row).toMatchObject({ assignedToUserId: null });
});
