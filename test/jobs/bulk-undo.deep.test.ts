/**
 * Tests the undo of bulk jobs: against a simple model (bulk-model.ts), after kills, after a cancelled job, and concurrently with other
 * undos of the same job.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { contextOn } from "#shared/context.ts";
import { ApiError, isTransient } from "#shared/errors.ts";
import { cancelJob } from "#shared/jobs/bulk/control.ts";
import { listJobs, readJob } from "#shared/jobs/bulk/read.ts";
import { hasEnded, type StoredAction, type StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { sized } from "../harness/tier.ts";
import {
  beginUndo,
  createNote,
  createTag,
  deactivateStatus,
  deleteProspect,
  deleteTag,
  disableUser,
  setTags,
  updateProspect,
} from "../harness/verbs.ts";
import { oneInFive } from "../sync/one-in-five.ts";
import { type Expected, expectedUndo, type Plain, plain } from "./bulk-model.ts";
import {
  endOf,
  impatient,
  newJob,
  newStage,
  resultsOf,
  rowsOf,
  runOnce,
  SMALL_CHUNK,
  type Stage,
  silent,
  storedJob,
  timeFor,
} from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const untilEnded = (stage: Stage, job: JobMessage) => endOf(harness, now, stage, job);

/** Lets a job handle `chunks` chunks. Then cancels the job, unless it has already completed. */
async function cancelledAfter(stage: Stage, job: JobMessage, chunks: number): Promise<StoredBulk> {
  if (chunks > 0) await runOnce(harness.sound(), stage, job, timeFor(chunks));
  if (!hasEnded(await storedJob(harness, job))) {
    await cancelJob(harness.sound(), silent, stage.caller, job.id, impatient);
  }
  return untilEnded(stage, job);
}

async function begunUndo({ caller }: Stage, { companyId, id }: JobMessage): Promise<JobMessage> {
  const undo = await beginUndo(harness.sound(), silent, caller, id, {});
  return { kind: "bulk", companyId, id: undo.id };
}

const COUNT = SMALL_CHUNK + 1;

/**
 * Generates a status or an assignee: its position in a list of ids, because the ids are known only after the company is created. 2 means
 * null (no status, or no assignee).
 */
const choice = fc.nat(2);
const tagSet = fc.subarray([0, 1]);
const change = fc.oneof(
  fc.record({ kind: fc.constant("status" as const), to: choice }),
  fc.record({ kind: fc.constant("assignee" as const), to: choice }),
  fc.record({ kind: fc.constant("tags" as const), to: tagSet }),
  fc.constantFrom({ kind: "name" as const }, { kind: "note" as const }, { kind: "delete" as const }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;
const record = fc.record({
  status: choice,
  assignee: choice,
  tags: tagSet,
  changes: fc.array(change, { maxLength: 2 }),
});
const action = fc.oneof(
  { weight: 1, arbitrary: fc.constant("delete" as const) },
  {
    weight: 4,
    arbitrary: fc.record(
      { status: choice, assignee: choice, added: fc.subarray([0, 1], { minLength: 1, maxLength: 1 }) },
      { requiredKeys: ["status"] },
    ),
  },
);

test("an undo restores exactly what nobody has changed since, also if users, statuses and tags were removed meanwhile and the job or its first undo was cancelled", {
  tags: "sized",
}, async () => {
  const law = fc.asyncProperty(
    fc.array(record, { minLength: COUNT, maxLength: COUNT }),
    action,
    fc.record({
      removal: fc.constantFrom("none", "user", "status", "tag"),
      ranChunks: fc.nat(2),
      undoneChunks: fc.nat(2),
    }),
    async (records, chosen, { removal, ranChunks, undoneChunks }) => {
      const context = harness.sound();
      const stage = await newStage(harness, COUNT);
      const { caller, ids, tagId, repId, statusIds } = stage;
      const second = await createTag(context, caller.companyId, { value: "roof", color: "#DC2626" });
      const tagOf = [tagId, second.id];
      const statusOf = [statusIds[0] ?? null, statusIds[1] ?? null, null];
      const userOf = [repId, caller.userId, null];
      const tags = (chosen: readonly number[]): number[] => chosen.map((i) => tagOf[i] ?? 0);
      for (const [i, { status, assignee, tags: own }] of records.entries()) {
        const patch = { currentStatusId: statusOf[status], assignedToUserId: userOf[assignee] };
        await updateProspect(context, caller, ids[i] ?? 0, patch);
        await setTags(context, caller, ids[i] ?? 0, { tagIds: tags(own) });
      }
      const before = (await rowsOf(harness, stage)).map(plain);

      const stored: StoredAction =
        chosen === "delete"
          ? { delete: true }
          : {
              statusId: statusOf[chosen.status] ?? null,
              ...(chosen.assignee !== undefined && { assignedToUserId: userOf[chosen.assignee] ?? null }),
              ...(chosen.added !== undefined && { addTagIds: tags(chosen.added) }),
            };
      const job = await newJob(harness, stage, stored);
      const first = ranChunks === 2 ? await untilEnded(stage, job) : await cancelledAfter(stage, job, ranChunks);
      const after = (await rowsOf(harness, stage)).map(plain);
      const changed = ids.filter((_, i) => JSON.stringify(before[i]) !== JSON.stringify(after[i]));
      expect(first.changed).toBe(changed.length);

      for (const [i, { changes }] of records.entries()) {
        for (const one of changes) await applied(stage, ids[i] ?? 0, one, { statusOf, userOf, tags });
      }
      if (removal === "user") await disableUser(context, caller, repId);
      if (removal === "status") await deactivateStatus(context, caller.companyId, statusIds[0] ?? 0);
      if (removal === "tag") await deleteTag(context, caller.companyId, tagId);
      const current = (await rowsOf(harness, stage)).map(plain);
      const none: Plain = { status: null, assignee: null, tags: [], isDeleted: false };
      const wanted = ids.map((id, i): Expected => {
        const [was = none, became = none, is = none] = [before[i], after[i], current[i]];
        return changed.includes(id) ? expectedUndo(was, became, is) : { row: is, outcome: "none" };
      });

      // After a user has cancelled an undo, the user may begin another one. The second undo skips what the first one has restored.
      const early = undoneChunks === 2 ? undefined : await begunUndo(stage, job);
      const isComplete =
        early !== undefined && (await cancelledAfter(stage, early, undoneChunks)).state === "completed";
      const undo = isComplete ? early : await begunUndo(stage, job);
      const last = await untilEnded(stage, undo);
      expect(last).toMatchObject({ state: "completed", total: changed.length, failed: 0 });
      expect((await rowsOf(harness, stage)).map(plain)).toEqual(wanted.map(({ row }) => row));
      const results = [
        ...(early === undefined ? [] : await resultsOf(harness, early)),
        ...(await resultsOf(harness, undo)),
      ];
      for (const [i, { outcome }] of wanted.entries()) {
        const own = results.filter(({ id }) => id === ids[i]).map(({ outcome: is, code }) => code ?? is);
        const untouched = outcome === "none" ? [] : [outcome];
        expect(own.slice(0, 1)).toEqual(untouched);
      }
      expect(await checkIndex(context.table, caller.companyId)).toEqual([]);
      await expect(begunUndo(stage, job)).rejects.toThrow("undoes this job already");
      await expect(begunUndo(stage, undo)).rejects.toThrow("cannot be undone");
    },
  );
  await fc.assert(law, { numRuns: sized({ short: 4, wide: 200 }) });
});

interface Names {
  readonly statusOf: readonly (number | null)[];
  readonly userOf: readonly (number | null)[];
  readonly tags: (chosen: readonly number[]) => number[];
}

/** Makes one change as a user does. If the prospect is deleted, the service refuses the change, and the refusal is ignored. */
async function applied({ caller }: Stage, id: number, one: Change, { statusOf, userOf, tags }: Names): Promise<void> {
  const context = harness.sound();
  const work = {
    status: () =>
      updateProspect(context, caller, id, { currentStatusId: "to" in one ? statusOf[Number(one.to)] : null }),
    assignee: () =>
      updateProspect(context, caller, id, { assignedToUserId: "to" in one ? userOf[Number(one.to)] : null }),
    tags: () => setTags(context, caller, id, { tagIds: one.kind === "tags" ? tags(one.to) : [] }),
    name: () => updateProspect(context, caller, id, { name: `renamed ${now.ms}` }),
    note: () => createNote(context, caller, id, { body: "called" }),
    delete: () => deleteProspect(context, caller, id),
  };
  await work[one.kind]().catch((error: unknown) => {
    if (!String(error).includes("no such prospect")) throw error;
  });
}

test("undoableUntil is null while an undo waits, runs or is completed, and is set again if the undo was cancelled", async () => {
  const stage = await newStage(harness, 2);
  const context = harness.sound();
  const job = await newJob(harness, stage, { statusId: stage.statusIds[0] ?? null });
  const until = async () => {
    const { items } = await listJobs(context, stage.caller, { limit: 500 });
    const { undoableUntil } = await readJob(context, stage.caller, job.id);
    expect(items.find(({ id }) => id === job.id)?.undoableUntil).toBe(undoableUntil);
    return undoableUntil;
  };
  expect(await until()).toBe(null);
  const { endedAt = "" } = await untilEnded(stage, job);
  const month = new Date(Date.parse(endedAt) + 30 * 24 * 3_600_000).toISOString();
  expect(await until()).toBe(month);
  const early = await begunUndo(stage, job);
  expect(await until()).toBe(null);
  await cancelledAfter(stage, early, 0);
  expect(await until()).toBe(month);
  const undo = await begunUndo(stage, job);
  await untilEnded(stage, undo);
  expect(await until()).toBe(null);
  expect((await readJob(context, stage.caller, undo.id)).undoableUntil).toBe(null);
  now.ms += 31 * 24 * 3_600_000;
  await expect(begunUndo(stage, job)).rejects.toMatchObject({ code: "conflict" });
});

test("five undos that are requested at once make one undo although every fifth call of the table fails", async () => {
  const stage = await newStage(harness, 3);
  const job = await newJob(harness, stage, { statusId: stage.statusIds[1] ?? 0 });
  await untilEnded(stage, job);
  db.plan(oneInFive);
  const codes = await Promise.all(Array.from({ length: 5 }, () => requestedUntilAnswered(stage, job)));
  db.plan(() => pass);
  // At most one request is answered without a conflict. There may be none: if the reply to the request that made the undo was lost, the
  // request is repeated, and the repetition is refused like the others.
  expect(codes.filter((code) => code !== "conflict").length).toBeLessThanOrEqual(1);
  const { items } = await listJobs(harness.sound(), stage.caller, { limit: 500 });
  expect(items.filter(({ kind }) => kind === "undo")).toHaveLength(1);
});

/** Requests an undo until the answer is final. Returns the code of the refusal, or undefined if the undo was made. */
async function requestedUntilAnswered({ caller }: Stage, { id }: JobMessage): Promise<string | undefined> {
  const context = contextOn(db.table, { now: () => now.ms });
  for (let tries = 0; tries < 50; tries++) {
    try {
      await beginUndo(context, silent, caller, id, {});
      return undefined;
    } catch (error) {
      if (error instanceof ApiError) return error.code;
      if (!isTransient(error)) throw error;
    }
  }
  throw new Error("the request never ends");
}
