/** Tests the counts that a bulk job shows while it handles a chunk, also if it is killed, and how many write units they cost. */
import { expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import type { JobContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { TableBusy } from "#shared/errors.ts";
import { presentJob } from "#shared/jobs/bulk/read.ts";
import type { Job } from "#shared/jobs/bulk/schema.ts";
import { StoredBulk, sumOf } from "#shared/jobs/bulk/stored.ts";
import { updateProspect } from "../harness/verbs.ts";
import { newStage, requestedJob, resultsOf, type Stage, storedJob } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { now, harness } = jobTests();

/** Number of records of a job. They fit into one chunk, which may have up to 512 records. The job handles them in groups of 64. */
const COUNT = 200;
const [SLOW_MS, FAST_MS] = [4_000, 100];

const newJob = (stage: Stage): Promise<JobMessage> =>
  requestedJob(harness.sound(), stage, { set: { currentStatusId: stage.statusIds[0] ?? null } });

const shown = (job: StoredBulk): Job => presentJob(job, { users: new Map() });

/**
 * Wraps a context so that reading each group of records takes `groupMs` milliseconds. `report` gets each state of the job that the job
 * stores. After `groups` groups have been read, each call to the table fails.
 */
function grouped(groupMs: number, report: (job: Job) => void, groups = Number.POSITIVE_INFINITY): JobContext {
  const { table, ...context } = harness.sound();
  let left = groups;
  const alive = (): void => {
    if (left < 0) throw new TableBusy("as planned");
  };
  return {
    ...context,
    table: {
      ...table,
      batchGet: async (wanted, options) => {
        if (wanted.length > 2) left--;
        alive();
        const items = await table.batchGet(wanted, options);
        now.ms += groupMs;
        return items;
      },
      transact: async (writes) => {
        alive();
        await table.transact(writes);
      },
      write: async (entry) => {
        alive();
        const item = await table.write(entry);
        if (item?.type === "bulkJob") report(shown(StoredBulk.parse(item)));
        return item;
      },
    },
  };
}

test("the shown counts of a job that is killed within a chunk do not decrease, and are exact at its end", async () => {
  const stage = await newStage(harness, COUNT);
  const job = await newJob(stage);
  const seen: Job[] = [];
  const report = (one: Job): void => void seen.push(one);
  for (const groups of [2, 3, 1, 4]) {
    await harness.run(grouped(SLOW_MS, report, groups), job);
    now.ms += 600_000;
  }
  expect(seen.at(-1)?.state).toBe("running");
  await harness.run(grouped(SLOW_MS, report), job);
  const changed = seen.map((one) => one.changed);
  expect(changed).toEqual(changed.toSorted((a, b) => a - b));
  expect(changed.at(-1)).toBe(COUNT);
  for (const one of seen) expect(sumOf(one) + one.unprocessed).toBe(COUNT);
  expect(shown(await storedJob(harness, job))).toMatchObject({ state: "completed", changed: COUNT, unprocessed: 0 });
  expect((await resultsOf(harness, job)).map(({ outcome }) => outcome)).toEqual(Array(COUNT).fill("changed"));
});

test("a job shows its progress after each slow group of records, which costs one write in three seconds, and the job at most 1.1 times the units of single changes", async () => {
  const FEW = 40;
  const single = await newStage(harness, FEW);
  const [currentStatusId = null] = single.statusIds;
  const { usage: ofSingle } = await metered(async () => {
    for (const id of single.ids) await updateProspect(harness.sound(), single.caller, id, { currentStatusId });
  });
  const costOf = async (groupMs: number) => {
    const job = await newJob(await newStage(harness, COUNT));
    const changed: number[] = [];
    const context = grouped(groupMs, (one) => changed.push(one.changed));
    const { usage } = await metered(() => harness.run(context, job));
    return { changed, units: usage.writeUnits };
  };
  const [fast, slow] = [await costOf(FAST_MS), await costOf(SLOW_MS)];
  expect([...new Set(slow.changed)]).toEqual([0, 64, 128, 192, 200]);
  expect(slow.changed.length).toBe(fast.changed.length + 3);
  expect(slow.units).toBeLessThanOrEqual(1.1 * (COUNT / FEW) * ofSingle.writeUnits);
});
