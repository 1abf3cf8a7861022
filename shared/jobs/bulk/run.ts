/** Executes bulk jobs: changes their records chunk by chunk. */
import { mapConcurrently } from "#shared/all-ended.ts";
import type { JobContext } from "#shared/context.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { LeaseLost } from "#shared/db/lease.ts";
import { failedAt } from "#shared/errors.ts";
import { type MemberReader, membersOf, storeResults } from "#shared/jobs/bulk/files.ts";
import { mayRun } from "#shared/jobs/bulk/kinds.ts";
import * as queue from "#shared/jobs/bulk/queue.ts";
import { handleRecord, readRows, settleRecord } from "#shared/jobs/bulk/record.ts";
import {
  countsBy,
  countsInChunk,
  type Member,
  plus,
  StoredBulk,
  type StoredResult,
  sumOf,
} from "#shared/jobs/bulk/stored.ts";
import { changesAtOnce, type JobKind, jobCaller, MAX_FRUITLESS_RUNS, type RunningJob } from "#shared/jobs/job.ts";
import * as limits from "#shared/limits.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Before each group of this size, the job reads the user's rights and the company's statuses, users and tags again. */
const TOGETHER = 64;
/** An invocation stops after this time, so that the jobs of other companies get their turn. */
const TURN_MS = 60_000;
/** The lease allows one invocation of a job at a time, and the queue one running job of a company. In tests, `members` has small chunks. */
export const bulkJob = (members = membersOf): JobKind<StoredBulk> => ({
  name: "bulk",
  schema: StoredBulk,
  keyOf: ({ companyId, id }) => keys.bulkJob(companyId, id),
  turnMs: TURN_MS,
  begin,
  work: (context, job, { isOpen }) => work(context, job, members(context.objects, job.stored), isOpen),
  giveUp: (context, job, { runs }) =>
    fail(context, job, members(context.objects, job.stored), runs === MAX_FRUITLESS_RUNS),
});

async function begin(context: JobContext, stored: StoredBulk) {
  if (stored.state === "paused" && Date.parse(stored.updatedAt) + limits.bulkKeptMs <= context.clock.now()) {
    await orLeaseLost(queue.end(context, stored, { state: "cancelled" }, equals("state", "paused")));
  }
  // Only an admitted job may run. Such a job is queued or running.
  if (!stored.isAdmitted) return undefined;
  return { set: { state: "running" as const, isOpen: true }, when: equals("isAdmitted", true) };
}

type BulkJob = RunningJob<StoredBulk>;

/**
 * Handles the chunks one after the other. Returns false if another invocation must continue. If `mustSettle`, the previous invocation was
 * interrupted and may have written records of the next chunk, so this chunk is handled before the job is paused or cancelled.
 */
async function work(
  context: JobContext,
  job: BulkJob,
  readMembers: MemberReader,
  mustSettle: boolean,
): Promise<boolean> {
  for (let settles = mustSettle; ; settles = false) {
    const { wanted, done, chunks, failure } = job.stored;
    if (failure !== undefined) return end(context, job, { state: "failed", failure });
    if (done >= chunks) return end(context, job, { state: "completed" });
    if (wanted === "cancelled" && !settles) return end(context, job, { state: "cancelled" });
    if (wanted === "paused" && !settles) return pause(context, job);
    if (job.isLate()) {
      await job.save({ isOpen: false });
      return false;
    }
    const { results, isAllowed } = await handleChunk(context, job, await readMembers(done));
    // Saved in one write with the counts, so that after an interruption, the next invocation ends the job and does not continue.
    const lost = { failure: "The user who began the job may no longer do this." };
    await storeChunk(context, job, results, isAllowed ? { runs: 0 } : { runs: 0, ...lost });
  }
}

/** If `settles`, records of the next chunk that are already written count as changed, so that an undo restores them. */
async function fail(context: JobContext, job: BulkJob, readMembers: MemberReader, settles: boolean): Promise<void> {
  const { done, chunks, runs } = job.stored;
  if (settles && done < chunks) {
    const members = await readMembers(done);
    const rowOf = await readRows(context, job.stored, members);
    const settle = (member: Member): Promise<StoredResult> => settleRecord(context, job.stored, member, rowOf(member));
    await storeChunk(context, job, await mapConcurrently(members, changesAtOnce(), settle), { runs });
  }
  await end(context, job, { state: "failed", failure: "The job could not be completed." });
}

async function storeChunk(
  context: JobContext,
  job: BulkJob,
  results: readonly StoredResult[],
  set: Pick<StoredBulk, "runs" | "failure">,
): Promise<void> {
  const { done } = job.stored;
  await storeResults(context.objects, job.stored, done, results);
  await job.save({ done: done + 1, ...set, ...plus(job.stored, countsOf(results)) });
}

/** `isAllowed` is false if the user has lost the right. The remaining records of the chunk are then unprocessed. */
async function handleChunk(context: JobContext, job: BulkJob, members: Member[]) {
  const results: StoredResult[] = [];
  let isAllowed = true;
  const heldUntil = (): number => job.heldUntilMs;
  for (let at = 0; at < members.length; at += TOGETHER) {
    const names = await currentDictionary(context, job.stored.companyId);
    const author = names.users.get(job.stored.createdBy);
    const caller = author && (await jobCaller(context, job.stored, author));
    const version = author?.version ?? 0;
    // All writes with older rights have ended here. A request that changes the user's rights waits until `authorVersion` is saved.
    const progress = progressAfter(job.stored, results);
    if (version !== job.stored.authorVersion) await job.save({ ...progress, authorVersion: version });
    else await job.heartbeat(progress);
    // If the user loses the right and gets it back within the chunk, the remaining records of the chunk still do not change.
    isAllowed &&= caller !== undefined && mayRun(caller, job.stored);
    const allowed = isAllowed ? caller : undefined;
    const some = members.slice(at, at + TOGETHER);
    const rowOf = await readRows(context, job.stored, some);
    const handle = (member: Member): Promise<StoredResult> =>
      handleRecord({ context, job: job.stored, caller: allowed, names, heldUntil }, member, rowOf(member));
    results.push(...(await mapConcurrently(some, changesAtOnce(), handle)));
  }
  return { results, isAllowed };
}

const countsOf = (results: readonly StoredResult[]) =>
  countsBy((wanted) => results.filter(({ outcome }) => outcome === wanted).length);

/**
 * Returns `inChunk`: the counts of the current chunk. They are separate, because the next invocation handles and counts these records again
 * if this one is killed. Returns nothing if the saved counts are not lower, so that the counts that clients see never decrease.
 */
function progressAfter(stored: StoredBulk, results: readonly StoredResult[]): Pick<StoredBulk, "inChunk"> {
  const counts = countsOf(results);
  return sumOf(counts) > sumOf(countsInChunk(stored)) ? { inChunk: { chunk: stored.done, ...counts } } : {};
}

const end = (context: JobContext, { stored, isHeld }: BulkJob, how: Pick<StoredBulk, "state" | "failure">) =>
  orLeaseLost(queue.end(context, stored, how, isHeld));

const pause = (context: JobContext, { stored, isHeld }: BulkJob) => orLeaseLost(queue.pause(context, stored, isHeld));

async function orLeaseLost(move: Promise<void>): Promise<true> {
  try {
    await move;
    return true;
  } catch (error) {
    throw failedAt(error, 0) === undefined ? error : new LeaseLost("another invocation has written the row of the job");
  }
}
