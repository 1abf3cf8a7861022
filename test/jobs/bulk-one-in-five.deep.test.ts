/**
 * Tests a bulk job and its undo, from the API request to the end, while every fifth call to the table and to the bucket fails. A simple
 * model (bulk-model.ts) computes the expected state of each prospect.
 */
import { expect, test } from "vitest";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import type { Plan } from "#shared/db/plan.ts";
import { ApiError, isTransient } from "#shared/errors.ts";
import type { Request } from "#shared/http/request.ts";
import * as bulk from "#shared/jobs/bulk/create.ts";
import { listJobs, readJob } from "#shared/jobs/bulk/read.ts";
import { pageOfResults } from "#shared/jobs/bulk/results.ts";
import type { Job, NewBulk } from "#shared/jobs/bulk/schema.ts";
import * as undos from "#shared/jobs/bulk/undo.ts";
import { LEASE_MS, sweepJobs } from "#shared/jobs/job.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { commanded } from "../harness/commanded.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { sized } from "../harness/tier.ts";
import { createProspect, createTag, deleteProspect, setTags, updateProspect } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { oneInFive } from "../sync/one-in-five.ts";
import { type Expected, expectedChange, expectedUndo, type PlainAction, plain } from "./bulk-model.ts";
import { rowsOf } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const PARALLEL = 8;
const FULL_TAGS = 50;

interface Stage {
  readonly caller: Caller;
  readonly ids: readonly number[];
  readonly action: PlainAction;
  readonly input: NewBulk;
  readonly otherStatus: number;
  readonly otherTags: readonly number[];
}

/**
 * Creates prospects of four kinds. The job changes several fields of the first kind, one field of the second, and nothing of the third. It
 * cannot change the fourth kind: one prospect that already has the maximum number of tags.
 */
async function newStage(count: number): Promise<Stage> {
  const context = harness.sound();
  const { caller, repId } = await newCompany(context);
  const tags: number[] = [];
  for (let i = 0; i <= FULL_TAGS; i++) {
    tags.push((await createTag(context, caller.companyId, { value: `tag ${i}`, color: "#DC2626" })).id);
  }
  const [addedTag = 0, ...otherTags] = tags;
  const { statuses } = await freshDictionary(context, caller.companyId);
  const [status = 0, otherStatus = 0] = statuses.keys();
  const ids = await mapConcurrently([...Array(count).keys()], PARALLEL, async (i) => {
    const currentStatusId = [null, status, otherStatus][i % 3] ?? null;
    const assignedToUserId = [null, repId, caller.userId][Math.floor(i / 3) % 3] ?? null;
    const { id } = await createProspect(context, caller, { name: `n${i}`, currentStatusId, assignedToUserId });
    if (i === 1) await setTags(context, caller, id, { tagIds: otherTags });
    else if (i % 9 === 4) await setTags(context, caller, id, { tagIds: tags.slice(0, 2) });
    return id;
  });
  const action = { status, assignee: repId, addedTag };
  const set = { currentStatusId: status, assignedToUserId: repId };
  const input = { filter: { all: true as const }, expectedCount: count, action: { set, addTagIds: [addedTag] } };
  return { caller, ids, action, input, otherStatus, otherTags };
}

/** Repeats a request as a client does: until it is answered with a success. */
async function answered<T>(request: (context: ApiContext) => Promise<T>): Promise<T> {
  const context = contextOn(db.table, { now: () => now.ms });
  for (let tries = 0; tries < 200; tries++) {
    try {
      return await request(context);
    } catch (error) {
      const isBusy = error instanceof ApiError && error.code === "request_in_progress";
      if (!isBusy && !isTransient(error)) throw error;
      // An earlier try of this request has claimed the idempotency key, and did not release it. 31 s after the claim, the service assumes
      // that the earlier try was killed, and accepts another one.
      if (isBusy) now.ms += 31_000;
    }
  }
  throw new Error("the request is never answered");
}

const post = (resource: string): Request => ({
  requestId: "r",
  method: "POST",
  path: resource,
  resource,
  prefix: "",
  headers: new Map([["idempotency-key", ["one key"]]]),
  pathParameters: {},
  queryParameters: new Map(),
  body: "{}",
});

/** Sends a POST until it is answered, and then once more. Both answers must be the same. */
async function posted(
  caller: Caller,
  resource: string,
  verb: (context: ApiContext) => Promise<Plan<unknown>>,
): Promise<unknown> {
  const send = () => answered((context) => commanded(context, caller, post(resource), verb));
  const first = await send();
  expect((await send()).value).toEqual(JSON.parse(JSON.stringify(first.value)));
  return first.value;
}

const COUNTS = ["changed", "unchanged", "skipped", "failed", "unprocessed"] as const;

/** Reads the job as a client does. The counts must sum to the total, and the number of handled records must not be smaller than before. */
async function read({ caller }: Stage, id: number, handledBefore: number): Promise<Job> {
  const job = await answered((context) => readJob(context, caller, id));
  for (const name of COUNTS) expect(job[name]).toBeGreaterThanOrEqual(0);
  expect(COUNTS.reduce((sum, name) => sum + job[name], 0)).toBe(job.total);
  expect(job.total - job.unprocessed).toBeGreaterThanOrEqual(handledBefore);
  return job;
}

/**
 * Reads all results of the job as a client does, and expects exactly one result for each record. Returns the outcome or the error code of
 * each record.
 */
async function resultsOf({ caller }: Stage, id: number): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  let next: string | null = "0.0";
  while (next !== null) {
    const cursor: string = next;
    const page = await answered((context) =>
      pageOfResults(context, harness.sound().objects, caller, id, { cursor, limit: 500 }),
    );
    for (const { id: record, outcome, code } of page.items) {
      expect(found.has(record)).toBe(false);
      found.set(record, code ?? outcome);
    }
    next = page.nextCursor;
  }
  return found;
}

/**
 * Executes the job as the queue and the sweeper do until it has ended, and reads it again and again meanwhile. Returns the job and the
 * number of executions.
 */
async function ended(stage: Stage, id: number): Promise<{ job: Job; executions: number }> {
  const { caller } = stage;
  const message: JobMessage = { kind: "bulk", companyId: caller.companyId, id };
  let handled = 0;
  let executions = 0;
  const look = async (): Promise<Job> => {
    const job = await read(stage, id, handled);
    handled = job.total - job.unprocessed;
    return job;
  };
  for (; executions < 100; executions++) {
    const job = await look();
    if (job.state !== "queued" && job.state !== "running") return { job, executions };
    let isRunning = true;
    const run = harness.run(harness.faulty(), message).finally(() => {
      isRunning = false;
    });
    while (isRunning) await look();
    await run;
    now.ms += LEASE_MS + 1_000;
    await sweepJobs(harness.faulty()).catch((error: unknown) => {
      if (!isTransient(error)) throw error;
    });
  }
  throw new Error("the job never ends");
}

/** Makes about one in five calls to the table and to the bucket fail. */
function beginFaults(): void {
  db.plan(oneInFive);
  harness.bucket.plan = () => (Math.random() >= 0.2 ? undefined : Math.random() < 0.5 ? "before" : "after");
}

/**
 * Compares the counts of the job and the rows of the prospects with the model. Each changed prospect must have been written once, and no
 * other prospect at all.
 */
async function check(stage: Stage, job: Job, wanted: readonly Expected[], before: readonly StoredProspect[]) {
  const rows = await rowsOf(harness, stage);
  expect(rows.map(plain)).toEqual(wanted.map(({ row }) => row));
  const writes = rows.map(({ version }, i) => version - (before[i]?.version ?? 0));
  expect(writes).toEqual(wanted.map(({ outcome }) => (outcome === "changed" ? 1 : 0)));
  const outcomes = wanted.map(({ outcome }) => outcome).filter((outcome) => outcome !== "none");
  const of = (...names: string[]): number => outcomes.filter((outcome) => names.includes(outcome)).length;
  expect(job).toMatchObject({
    state: "completed",
    total: outcomes.length,
    changed: of("changed"),
    unchanged: of("unchanged"),
    skipped: of("not_found", "changed_since"),
    failed: of("conflict"),
    unprocessed: 0,
  });
  const results = await resultsOf(stage, job.id);
  expect(stage.ids.map((id) => results.get(id) ?? "none")).toEqual(wanted.map(({ outcome }) => outcome));
  expect(results.size).toBe(outcomes.length);
  return rows;
}

test("although every fifth call fails, a job handles each prospect once, and its undo restores exactly what nobody has changed since", {
  tags: "sized",
}, async () => {
  // The SDK makes up to three attempts of each call, and each attempt fails with a probability of 1/5. One call in 125 therefore fails in
  // all three attempts, which ends the execution. A full chunk has 512 records and needs many calls, so the job needs several executions.
  const stage = await newStage(sized({ short: 120, wide: 1_100 }));
  const { caller, ids, action, input, otherStatus, otherTags } = stage;
  const context = harness.sound();
  const services = { objects: harness.bucket, jobs: harness.sound().jobs };

  beginFaults();
  await posted(caller, "/api/prospects/bulk", (within) => bulk.createBulk(within, services, caller, input));
  harness.heal();
  const { items, nextCursor } = await listJobs(context, caller, { limit: 500 });
  expect([items.length, nextCursor]).toEqual([1, null]);
  const [{ id } = { id: 0 }] = items;
  // Users delete some prospects after the job has chosen them.
  for (const [i, own] of ids.entries()) if (i % 12 === 5) await deleteProspect(context, caller, own);

  const before = await rowsOf(harness, stage);
  beginFaults();
  const first = await ended(stage, id);
  harness.heal();
  const after = await check(
    stage,
    first.job,
    before.map((row) => expectedChange(plain(row), action)),
    before,
  );

  // Users change status, assignee, tags or name of some prospects, and delete some.
  const edits = [
    (own: number) => updateProspect(context, caller, own, { currentStatusId: otherStatus }),
    (own: number) => updateProspect(context, caller, own, { currentStatusId: null, assignedToUserId: caller.userId }),
    (own: number) => setTags(context, caller, own, { tagIds: otherTags.slice(0, 1) }),
    (own: number) => updateProspect(context, caller, own, { name: "renamed" }),
    (own: number) => deleteProspect(context, caller, own),
  ];
  for (const [i, own] of ids.entries()) {
    const isDeleted = after[i]?.deletedAt !== undefined;
    if (i % 2 === 0 && !isDeleted) await edits[(i / 2) % edits.length]?.(own);
  }

  const current = await rowsOf(harness, stage);
  const undone = current.map((row, i): Expected => {
    const [was, became] = [before[i], after[i]];
    if (was === undefined || became === undefined || was.version === became.version) {
      return { row: plain(row), outcome: "none" };
    }
    return expectedUndo(plain(was), plain(became), plain(row));
  });
  beginFaults();
  await posted(caller, `/api/jobs/${id}/undo`, (within) => undos.beginUndo(within, services.jobs, caller, id, {}));
  const undoId = (await read(stage, id, ids.length)).undoneBy ?? 0;
  const second = await ended(stage, undoId);
  harness.heal();
  await check(stage, second.job, undone, current);
  expect(await checkIndex(context.table, caller.companyId)).toEqual([]);
});
