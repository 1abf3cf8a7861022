/** Tests the undo of bulk jobs: what it restores, also after cancellations, failing calls, concurrent undos and merges of the index. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { readManifest } from "#shared/company-index/manifest.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import { ApiError, isTransient } from "#shared/errors.ts";
import { cancelJob } from "#shared/jobs/bulk/control.ts";
import { listJobs, readJob } from "#shared/jobs/bulk/read.ts";
import { hasEnded, type StoredAction, type StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { LEASE_MS } from "#shared/jobs/job.ts";
import { indexNotesAgain } from "#shared/prospects/bulk-write.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { checkIndex, readAllProspects } from "../harness/index-oracle.ts";
import { killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { oneInFive } from "../sync/one-in-five.ts";
import * as bulk from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const untilEnded = (stage: bulk.Stage, job: JobMessage) => bulk.endOf(harness, now, stage, job);

/** Lets a job handle `chunks` chunks. Then cancels the job, unless it has already completed. */
async function cancelledAfter(stage: bulk.Stage, job: JobMessage, chunks: number): Promise<StoredBulk> {
  if (chunks > 0) await bulk.runOnce(harness.sound(), stage, job, bulk.timeFor(chunks));
  if (!hasEnded(await bulk.storedJob(harness, job))) {
    await cancelJob(harness.sound(), bulk.silent, stage.caller, job.id, bulk.impatient);
  }
  return untilEnded(stage, job);
}

async function begunUndo({ caller }: bulk.Stage, { companyId, id }: JobMessage): Promise<JobMessage> {
  const undo = await verbs.beginUndo(harness.sound(), bulk.silent, caller, id, {});
  return { kind: "bulk", companyId, id: undo.id };
}

const COUNT = bulk.SMALL_CHUNK + 1;

/** Returns the fields of a prospect that an undo restores. The tags are in the order in which they were added. */
const plain = ({ statusId, assignedToUserId, tagIds, deletedAt }: StoredProspect) => ({
  status: statusId,
  assignee: assignedToUserId,
  tags: tagIds,
  isDeleted: deletedAt !== undefined,
});

type Plain = ReturnType<typeof plain>;
const fields = ["status", "assignee", "tags", "isDeleted"] as const;
const isSame = (a: Plain, b: Plain, field: keyof Plain): boolean =>
  JSON.stringify(a[field]) === JSON.stringify(b[field]);

/**
 * Returns the state that an undo must give to a prospect, and the outcome, or the code of the error, that it must report. `before` and
 * `after` are the states directly before and after the undone job. `current` is the state when the undo begins.
 */
function expectedUndo(before: Plain, after: Plain, current: Plain) {
  if (current.isDeleted && !after.isDeleted) return { row: current, outcome: "not_found" };
  const restored = fields.filter((field) => !isSame(before, after, field) && isSame(after, current, field));
  if (restored.length === 0) return { row: current, outcome: "changed_since" };
  const of = <F extends keyof Plain>(field: F): Plain[F] => (restored.includes(field) ? before : current)[field];
  const row = { status: of("status"), assignee: of("assignee"), tags: of("tags"), isDeleted: of("isDeleted") };
  return { row, outcome: "changed" };
}

/** Generates the position of a status in `statusOf` or a user in `userOf`. The last position means null: no status, or no assignee. */
const choice = fc.nat(2);
const tagSet = fc.subarray([0, 1]);
const change = fc.oneof(
  fc.record({ kind: fc.constant("status" as const), to: choice }),
  fc.record({ kind: fc.constant("assignee" as const), to: choice }),
  fc.record({ kind: fc.constant("tags" as const), to: tagSet }),
  fc.constantFrom({ kind: "name" as const }, { kind: "note" as const }, { kind: "delete" as const }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;
const changes = fc.array(change, { maxLength: 2 });
const record = fc.record({ status: choice, assignee: choice, tags: tagSet, changes });
const removals = fc.constantFrom("none", "user", "status", "tag");
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

test("an undo restores exactly what nobody has changed since", { tags: "sized" }, async () => {
  const law = fc.asyncProperty(
    fc.array(record, { minLength: COUNT, maxLength: COUNT }),
    action,
    fc.record({ removal: removals, ranChunks: fc.nat(2), undoneChunks: fc.nat(2) }),
    async (records, chosen, { removal, ranChunks, undoneChunks }) => {
      const context = harness.sound();
      const stage = await bulk.newStage(harness, COUNT);
      const { caller, ids, tagId, repId, statusIds } = stage;
      const second = await verbs.createTag(context, caller.companyId, { value: "roof", color: "#DC2626" });
      const tagOf = [tagId, second.id];
      const statusOf = [statusIds[0] ?? null, statusIds[1] ?? null, null];
      const userOf = [repId, caller.userId, null];
      const tags = (chosen: readonly number[]): number[] => chosen.map((i) => tagOf[i] ?? 0);
      for (const [i, { status, assignee, tags: own }] of records.entries()) {
        const patch = { currentStatusId: statusOf[status], assignedToUserId: userOf[assignee] };
        await verbs.updateProspect(context, caller, ids[i] ?? 0, patch);
        await verbs.setTags(context, caller, ids[i] ?? 0, { tagIds: tags(own) });
      }
      const before = (await bulk.rowsOf(harness, stage)).map(plain);

      const stored: StoredAction =
        chosen === "delete"
          ? { delete: true }
          : {
              statusId: statusOf[chosen.status] ?? null,
              ...(chosen.assignee !== undefined && { assignedToUserId: userOf[chosen.assignee] ?? null }),
              ...(chosen.added !== undefined && { addTagIds: tags(chosen.added) }),
            };
      const job = await bulk.newJob(harness, stage, stored);
      const first = ranChunks === 2 ? await untilEnded(stage, job) : await cancelledAfter(stage, job, ranChunks);
      const after = (await bulk.rowsOf(harness, stage)).map(plain);
      const changed = ids.filter((_, i) => JSON.stringify(before[i]) !== JSON.stringify(after[i]));
      expect(first.changed).toBe(changed.length);

      for (const [i, { changes }] of records.entries()) {
        for (const one of changes) await applied(stage, ids[i] ?? 0, one, { statusOf, userOf, tags });
      }
      if (removal === "user") await verbs.disableUser(context, caller, repId);
      if (removal === "status") await verbs.deactivateStatus(context, caller.companyId, statusIds[0] ?? 0);
      if (removal === "tag") await verbs.deleteTag(context, caller.companyId, tagId);
      const current = (await bulk.rowsOf(harness, stage)).map(plain);
      const none: Plain = { status: null, assignee: null, tags: [], isDeleted: false };
      const wanted = ids.map((id, i) => {
        const [was = none, became = none, is = none] = [before[i], after[i], current[i]];
        return changed.includes(id) ? expectedUndo(was, became, is) : { row: is, outcome: "none" };
      });

      // After an undo is cancelled, the user may begin another one. The second undo skips the prospects that the first one has restored.
      const early = undoneChunks === 2 ? undefined : await begunUndo(stage, job);
      const isComplete =
        early !== undefined && (await cancelledAfter(stage, early, undoneChunks)).state === "completed";
      const undo = isComplete ? early : await begunUndo(stage, job);
      const last = await untilEnded(stage, undo);
      expect(last).toMatchObject({ state: "completed", total: changed.length, failed: 0 });
      expect((await bulk.rowsOf(harness, stage)).map(plain)).toEqual(wanted.map(({ row }) => row));
      const results = [
        ...(early === undefined ? [] : await bulk.resultsOf(harness, early)),
        ...(await bulk.resultsOf(harness, undo)),
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

type Names = Record<"statusOf" | "userOf", readonly (number | null)[]> & { tags(chosen: readonly number[]): number[] };

/** Makes one change as a user does. If the prospect is deleted, the service refuses the change, and the test ignores this error. */
async function applied(
  { caller }: bulk.Stage,
  id: number,
  one: Change,
  { statusOf, userOf, tags }: Names,
): Promise<void> {
  const context = harness.sound();
  const work = {
    status: () =>
      verbs.updateProspect(context, caller, id, { currentStatusId: "to" in one ? statusOf[Number(one.to)] : null }),
    assignee: () =>
      verbs.updateProspect(context, caller, id, { assignedToUserId: "to" in one ? userOf[Number(one.to)] : null }),
    tags: () => verbs.setTags(context, caller, id, { tagIds: one.kind === "tags" ? tags(one.to) : [] }),
    name: () => verbs.updateProspect(context, caller, id, { name: `renamed ${now.ms}` }),
    note: () => verbs.createNote(context, caller, id, { body: "called" }),
    delete: () => verbs.deleteProspect(context, caller, id),
  };
  await work[one.kind]().catch((error: unknown) => {
    if (!String(error).includes("no such prospect")) throw error;
  });
}

test("undoableUntil is null while an undo waits, runs or is completed, and is set again if the undo was cancelled", async () => {
  const stage = await bulk.newStage(harness, 2);
  const context = harness.sound();
  const job = await bulk.newJob(harness, stage, { statusId: stage.statusIds[0] ?? null });
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
  const stage = await bulk.newStage(harness, 3);
  const job = await bulk.newJob(harness, stage, { statusId: stage.statusIds[1] ?? 0 });
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
async function requestedUntilAnswered({ caller }: bulk.Stage, { id }: JobMessage): Promise<string | undefined> {
  const context = contextOn(db.table, { now: () => now.ms });
  for (let tries = 0; tries < 50; tries++) {
    try {
      await verbs.beginUndo(context, bulk.silent, caller, id, {});
      return undefined;
    } catch (error) {
      if (error instanceof ApiError) return error.code;
      if (!isTransient(error)) throw error;
    }
  }
  throw new Error("the request never ends");
}

/** Executes the job until it has ended, while about one in five calls to the table and to the bucket fail. */
async function endedDespiteFaults(stage: bulk.Stage, job: JobMessage): Promise<StoredBulk> {
  for (let runs = 0; runs < 100; runs++) {
    db.plan(oneInFive);
    harness.bucket.plan = () => (Math.random() >= 0.2 ? undefined : Math.random() < 0.5 ? "before" : "after");
    await bulk.runOnce(harness.faulty(), stage, job);
    harness.heal();
    const stored = await bulk.storedJob(harness, job);
    if (hasEnded(stored)) return stored;
    now.ms += LEASE_MS + 1_000;
  }
  throw new Error("the job never ends");
}

test("although every fifth call fails, a job and its undo handle each prospect once", { tags: "sized" }, async () => {
  const count = sized({ short: 24, wide: 120 });
  const stage = await bulk.newStage(harness, count);
  const { caller, ids, statusIds } = stage;
  const statusId = statusIds[0] ?? null;
  const [deleted = 0, unchanged = 0] = ids;
  await verbs.deleteProspect(harness.sound(), caller, deleted);
  await verbs.updateProspect(harness.sound(), caller, unchanged, { currentStatusId: statusId });
  const job = await bulk.newJob(harness, stage, { statusId });
  const counts = { state: "completed", changed: count - 2, unchanged: 1, skipped: 1, failed: 0 };
  expect(await endedDespiteFaults(stage, job)).toMatchObject(counts);
  expect((await bulk.resultsOf(harness, job)).map(({ id }) => id)).toEqual(ids);
  const undo = await begunUndo(stage, job);
  const undone = { state: "completed", total: count - 2, changed: count - 2 };
  expect(await endedDespiteFaults(stage, undo)).toMatchObject(undone);
  expect((await bulk.resultsOf(harness, undo)).map(({ id }) => id)).toEqual(ids.slice(2));
  const changed = (await bulk.rowsOf(harness, stage)).slice(2);
  expect(new Set(changed.map((row) => `${row.version} ${row.statusId}`))).toEqual(new Set(["3 null"]));
  expect(await checkIndex(harness.sound().table, caller.companyId)).toEqual([]);
});

/** Number of notes of a prospect. The undo needs several transactions for them, because one transaction writes at most 33 notes. */
const MANY = 60;

/**
 * Creates and flushes other prospects until the search index consists of one part. A merge of all parts removes the notes of deleted
 * prospects from the index.
 */
async function mergeEverything({ caller }: bulk.Stage): Promise<void> {
  const context = harness.sound();
  for (let flushes = 0; flushes < 10; flushes++) {
    for (let i = 0; i < 10; i++) await verbs.createProspect(context, caller, { name: "other" });
    await flush(context, caller.companyId, { least: 1, settleMs: 0 });
    const { head } = await readUnflushed(context.table, caller.companyId);
    const { parts } = await readManifest(context.table, caller.companyId, head.manifest);
    // After the first flush, the only part may still contain the notes of the deleted prospects. The next merge removes them.
    if (flushes > 0 && parts.length === 1) return;
  }
  throw new Error("the parts were not merged");
}

const found = async ({ caller }: bulk.Stage, search: string): Promise<number[]> =>
  (await listProspects(harness.sound(), caller, ListQuery.parse({ search }))).items.map(({ id }) => id);

/** Creates prospects with notes, deletes them by a bulk job, and begins the undo of this job. */
async function deleted(): Promise<{ stage: bulk.Stage; undo: JobMessage }> {
  const context = harness.sound();
  const stage = await bulk.newStage(harness, 2);
  const [first = 0, second = 0] = stage.ids;
  for (let i = 0; i < MANY; i++) await verbs.createNote(context, stage.caller, first, { body: `gutter w${i}` });
  await verbs.createNote(context, stage.caller, second, { body: `chimney ${"long ".repeat(200)}` });
  const job = await bulk.newJob(harness, stage, { delete: true });
  await untilEnded(stage, job);
  await mergeEverything(stage);
  return { stage, undo: await begunUndo(stage, job) };
}

test("an undo that is killed at any transaction brings back all notes in its next run", {
  tags: ["sized"],
}, async () => {
  const counted = await deleted();
  const isWrite = (operation: string): boolean => operation === "TransactWriteItems";
  db.plan(() => pass);
  await bulk.runOnce(harness.faulty(), counted.stage, counted.undo);
  const writes = db.calls.filter(isWrite).length;
  for (const last of killPointsOf(writes, 0)) {
    const { stage, undo } = await deleted();
    let seen = 0;
    db.plan((operation) => {
      if (isWrite(operation)) seen++;
      return seen < last ? pass : serverError;
    });
    await bulk.runOnce(harness.faulty(), stage, undo);
    await untilEnded(stage, undo);
    expect([last, await found(stage, `w${MANY - 1}`)]).toEqual([last, [stage.ids[0]]]);
    expect([last, await found(stage, "chimney")]).toEqual([last, [stage.ids[1]]]);
  }
});

test("a note that a user changes while the notes are indexed again keeps the user's text, and the others are indexed too", async () => {
  const context = harness.sound();
  const { caller, ids } = await bulk.newStage(harness, 1);
  const [prospectId = 0] = ids;
  const mine = await verbs.createNote(context, caller, prospectId, { body: "chimney" });
  await verbs.createNote(context, caller, prospectId, { body: "gutter" });
  const meanwhile = () => verbs.updateNote(harness.sound(), caller, mine.id, { body: "skylight" });
  let isFirst = true;
  db.plan((operation) => {
    if (operation !== "TransactWriteItems" || !isFirst) return pass;
    isFirst = false;
    return { kind: "early", meanwhile };
  });
  await indexNotesAgain(harness.faulty().table, caller.companyId, prospectId);
  const { notes } = await readAllProspects(context.table, caller.companyId);
  expect(notes.map(({ body, version }) => `${body} ${version}`).toSorted()).toEqual(["gutter 2", "skylight 2"]);
});
