/**
 * Tests that a bulk job can be paused, resumed and cancelled at each of its calls to the table. Also tests the counts that a client sees
 * meanwhile.
 */
import { expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { cancelJob, pauseJob, resumeJob } from "#shared/jobs/bulk/control.ts";
import { readJob } from "#shared/jobs/bulk/read.ts";
import { hasEnded, type StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { killPointsOf } from "../harness/kills.ts";
import {
  endOf,
  impatient,
  newJob,
  newStage,
  queueOf,
  resultsOf,
  rowsOf,
  runOnce,
  SMALL_CHUNK,
  type Stage,
  silent,
  storedJob,
} from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const COUNT = SMALL_CHUNK + 2;

async function started() {
  const stage = await newStage(harness, COUNT);
  return { stage, job: await newJob(harness, stage, { statusId: stage.statusIds[0] ?? null }) };
}

/** Reads the job as a client does, and expects that its counts sum to the total. Returns the number of records that the job has handled. */
async function handled({ caller }: Stage, { id }: JobMessage): Promise<number> {
  const { total, changed, unchanged, skipped, failed, unprocessed } = await readJob(harness.sound(), caller, id);
  expect(changed + unchanged + skipped + failed + unprocessed).toBe(total);
  expect(unprocessed).toBeGreaterThanOrEqual(0);
  return total - unprocessed;
}

const isStopped = (stored: StoredBulk): boolean => hasEnded(stored) || stored.state === "paused";
const untilStopped = (stage: Stage, job: JobMessage) => endOf(harness, now, stage, job, { isOver: isStopped });

test("at each call of a job to the table, a client sees counts that sum to the total and never decrease", async () => {
  const { stage, job } = await started();
  const seen: number[] = [];
  db.plan(() => ({ kind: "late", meanwhile: async () => seen.push(await handled(stage, job)) }));
  expect(await runOnce(harness.faulty(), stage, job)).toBe(true);
  expect(new Set(seen)).toEqual(new Set([0, SMALL_CHUNK, COUNT]));
  expect(await handled(stage, job)).toBe(COUNT);
  expect((await storedJob(harness, job)).state).toBe("completed");
});

const verbs = {
  pause: [pauseJob],
  cancel: [cancelJob],
  "pause and resume": [pauseJob, resumeJob],
  "pause and cancel": [pauseJob, cancelJob],
} as const;

test.each(Object.entries(verbs))(
  "a request for %s at any call of the job leaves each record written once and counted once",
  { tags: "sized" },
  async (name, requests) => {
    const counted = await started();
    db.plan(() => pass);
    expect(await runOnce(harness.faulty(), counted.stage, counted.job)).toBe(true);
    const calls = db.calls.length;
    for (const at of killPointsOf(calls, Object.keys(verbs).indexOf(name))) {
      db.plan(() => pass);
      const { stage, job } = await started();
      const meanwhile = async (): Promise<void> => {
        for (const request of requests) {
          // If the job has already ended, the service refuses the request. The test ignores this error.
          await request(harness.sound(), silent, stage.caller, job.id, impatient).catch(() => undefined);
          await handled(stage, job);
        }
      };
      db.plan((_operation, number) => (number === at ? { kind: at % 2 === 0 ? "early" : "late", meanwhile } : pass));
      expect(await runOnce(harness.faulty(), stage, job)).toBe(true);
      let stopped = await untilStopped(stage, job);
      const marked = async () => (await rowsOf(harness, stage)).filter(({ bulk }) => bulk?.jobId === job.id);
      expect(await marked(), `call ${at}`).toHaveLength(stopped.changed);
      expect(await resultsOf(harness, job)).toHaveLength(stopped.changed);
      if (stopped.state === "paused") {
        expect(await queueOf(harness, stage)).toMatchObject({ running: null, waiting: [], paused: [job.id] });
        await resumeJob(harness.sound(), silent, stage.caller, job.id);
        stopped = await untilStopped(stage, job);
      }
      expect(stopped.state === "cancelled" || stopped.changed === COUNT, `call ${at}`).toBe(true);
      expect(await marked()).toHaveLength(stopped.changed);
      expect((await rowsOf(harness, stage)).every(({ version }) => version <= 2)).toBe(true);
      expect(await queueOf(harness, stage)).toMatchObject({ running: null, waiting: [], paused: [] });
    }
  },
);
