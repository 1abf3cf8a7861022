/** Tests the memory that bulk jobs need, what a repeated chunk costs, and that the jobs of several companies take turns. */
import { expect, test } from "vitest";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Objects } from "#shared/aws/s3.ts";
import type { JobMessage } from "#shared/aws/sqs.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { CHUNK, chunksOf, membersOf, storeMembers, storeResults } from "#shared/jobs/bulk/files.ts";
import { ndjson, resultsAs } from "#shared/jobs/bulk/results.ts";
import * as limits from "#shared/limits.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { createBulk, createProspect, createTag } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import * as bulk from "./bulk-stage.ts";
import { jobTests, memoryBucket } from "./faulty-jobs.ts";

const { now, harness } = jobTests();

const MILLION = 1_000_000;
const PIECE = 32 * CHUNK;

test("storing and reading a million ids holds at most nine pieces of them at once", async () => {
  const bucket = memoryBucket();
  let [given, stored, held] = [0, 0, 0];
  function* ids(): Generator<number> {
    for (let id = 1; id <= MILLION; id++) {
      held = Math.max(held, ++given - stored);
      yield 2 ** 40 + id;
    }
  }
  const objects: Objects = {
    ...bucket,
    put: async (key, bytes, type) => {
      await bucket.put(key, bytes, type);
      stored += PIECE;
    },
  };
  const job = { companyId: 1, id: 2 };
  expect(await storeMembers(objects, job, ids())).toBe(MILLION);
  expect(held).toBeLessThanOrEqual(9 * PIECE);
  // The files store the difference between each id and the id before it. These ids are consecutive, so each difference is small.
  expect(Math.max(...Array.from(bucket.files.values(), ({ length }) => length))).toBeLessThan(100_000);

  const from = bucket.calls;
  const read = membersOf(bucket, { ...job, kind: "prospect_bulk", total: MILLION });
  let next = 1;
  for (let chunk = 0; chunk < chunksOf(MILLION); chunk++) {
    const own = await read(chunk);
    expect(own.length).toBeLessThanOrEqual(CHUNK);
    expect(own[0]?.id).toBe(2 ** 40 + next);
    next += own.length;
  }
  expect(next).toBe(MILLION + 1);
  expect(bucket.calls - from).toBe(Math.ceil(MILLION / PIECE));
});

test("the file with all results reads at most eight chunks ahead of the client", async () => {
  const context = harness.sound();
  const stage = await bulk.newStage(harness, 1);
  const job = await bulk.newJob(harness, stage, { statusId: null });
  const CHUNKS = 40;
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const outcome = "changed" as const;
    const results = Array.from({ length: CHUNK }, (_, i) => ({ id: chunk * CHUNK + i + 1, outcome }));
    await storeResults(harness.bucket, job, chunk, results);
  }
  const set = { chunks: CHUNKS, done: CHUNKS, total: CHUNKS * CHUNK, changed: CHUNKS * CHUNK };
  await context.table.write({ update: keys.bulkJob(job.companyId, job.id), change: { set } });
  let [read, seen] = [0, 0];
  const objects: Objects = {
    ...harness.bucket,
    get: (key) => {
      read++;
      expect(read - seen).toBeLessThanOrEqual(8);
      return harness.bucket.get(key);
    },
  };
  let lines = 0;
  for await (const text of resultsAs(ndjson, { ...context, objects }, stage.caller, job.id, {})) {
    lines += text.split("\n").length - 1;
    seen++;
  }
  expect([seen, lines]).toEqual([CHUNKS, CHUNKS * CHUNK]);
});

test("a job gives a prospect as many tags as it may have, and no further one", async () => {
  const stage = await bulk.newStage(harness, 1);
  const { companyId } = stage.caller;
  const addTagIds: number[] = [];
  for (let i = 0; i < limits.tagsPerProspect; i++)
    addTagIds.push((await createTag(harness.sound(), companyId, { value: `t${i}`, color: "#DC2626" })).id);
  const ended = async (tagIds: readonly number[]) =>
    bulk.endOf(harness, now, stage, await bulk.newJob(harness, stage, { addTagIds: [...tagIds] }));
  expect(await ended(addTagIds)).toMatchObject({ changed: 1, failed: 0 });
  expect(await ended([stage.tagId])).toMatchObject({ changed: 0, failed: 1 });
  expect((await bulk.rowsOf(harness, stage))[0]?.tagIds).toEqual(addTagIds);
});

test("a job that another one precedes in the queue stores its ids once, and only the first one is queued", async () => {
  const stage = await bulk.newStage(harness, 3);
  const { caller, ids, statusIds } = stage;
  const context = harness.sound();
  let first: Promise<JobMessage> | undefined;
  const table = {
    ...context.table,
    async transact(writes: readonly Write[]) {
      first ??= created(stage, 0);
      await first;
      await context.table.transact(writes);
    },
  };
  const calls = harness.bucket.calls;
  const action = { set: { currentStatusId: statusIds[0] } };
  expect(await createBulk({ ...context, table }, context, caller, { ids: [...ids], action })).toMatchObject({
    state: "queued",
  });
  expect(harness.bucket.calls - calls).toBe(1);
  expect(harness.queue).toEqual([await first]);
});

const created = (stage: bulk.Stage, at: number) =>
  bulk.newJob(harness, stage, { statusId: stage.statusIds[at % 2] ?? null });

test("companies with many jobs get equal numbers of turns", async () => {
  const stages: bulk.Stage[] = [];
  for (let i = 0; i < 3; i++) stages.push(await bulk.newStage(harness, 2 * bulk.SMALL_CHUNK));
  for (const stage of stages) for (let i = 0; i < 3; i++) await created(stage, i);
  expect(harness.queue).toHaveLength(3);
  const turns = new Map(stages.map(({ caller }) => [caller.companyId, 0]));
  for (let message = harness.queue.shift(); message !== undefined; message = harness.queue.shift()) {
    const { companyId } = message;
    turns.set(companyId, (turns.get(companyId) ?? 0) + 1);
    const counts = [...turns.values()];
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    // The queue must contain no second message of the company whose turn it is. Otherwise two invocations could work for this company while
    // other companies wait.
    expect(harness.queue.filter((one) => one.companyId === companyId)).toEqual([]);
    const stage = stages.find(({ caller }) => caller.companyId === companyId) ?? expect.fail("no such company");
    // This turn ends after one chunk. In the service, a turn takes a minute and handles many chunks.
    expect(await bulk.runOnce(harness.sound(), stage, message, bulk.timeFor(1))).toBe(true);
  }
  // Each company has three jobs of two chunks, so it needs six turns.
  expect([...turns.values()]).toEqual([6, 6, 6]);
});

test("a run that finds a chunk already written reads each row once, in few calls, and writes no row again", async () => {
  const context = harness.sound();
  const { caller } = await newCompany(context);
  const { companyId } = caller;
  const create = async () => (await createProspect(context, caller, {})).id;
  const ids = await mapConcurrently([...Array(CHUNK).keys()], 8, create);
  const [currentStatusId] = (await freshDictionary(context, companyId)).statuses.keys();
  const job = await bulk.requestedJob(context, { caller, ids }, { set: { currentStatusId } });

  // The second call to the bucket, which stores the results of the chunk, fails. The execution therefore ends after it has written all rows
  // of the chunk.
  const calls = harness.bucket.calls;
  harness.bucket.plan = (call) => (call === calls + 2 ? "before" : undefined);
  const first = await metered(() => harness.run(context, job));
  expect([first.result, (await bulk.storedJob(harness, job)).done]).toEqual([false, 0]);
  const second = await metered(() => harness.run(harness.sound(), job));
  expect(second.result).toBe(true);
  expect(await bulk.storedJob(harness, job)).toMatchObject({ state: "completed", changed: CHUNK });
  console.info(JSON.stringify({ first: first.usage, second: second.usage }));
  // The second execution reads the rows in eight groups, with two requests each: one for the rows, and one for the version of the company's
  // names of statuses, tags and users. The other 20 requests are for the row of the job and its results.
  expect(second.usage.requests).toBeLessThan(8 * 2 + 20);
  expect(second.usage.readUnits).toBeLessThan(CHUNK + 8 + 20);
  expect(second.usage.writeUnits).toBeLessThan(30);
});
