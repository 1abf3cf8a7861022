/** Executes bulk jobs: changes their records chunk by chunk. A written row has the id of the job, so that it is not written again. */
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobContext } from "#shared/context.ts";
import { equals, type Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { LeaseLost } from "#shared/db/lease.ts";
import { optimistic } from "#shared/db/plan.ts";
import { ApiError, failedAt, isDeploymentFault, isTransient } from "#shared/errors.ts";
import { type MemberReader, membersOf, storeResults } from "#shared/jobs/bulk/files.ts";
import { decisions, mayRun } from "#shared/jobs/bulk/kinds.ts";
import * as queue from "#shared/jobs/bulk/queue.ts";
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
import { errorFields, log } from "#shared/log.ts";
import { differing, indexNotesAgain, isEmpty, writeByJob } from "#shared/prospects/bulk-write.ts";
import { isInScope, isPublished } from "#shared/prospects/read.ts";
import { type BulkFields, type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";

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
    // `failure` is saved in one write with the counts. After an interruption, the next invocation therefore ends the job and does not
    // continue.
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

interface Handling {
  readonly context: JobContext;
  readonly job: StoredBulk;
  /** The user who began the job, with current rights. Undefined if the user has lost the right: no further record is then written. */
  readonly caller: Caller | undefined;
  readonly names: Dictionary;
  /** Returns the end of the job's lease, in milliseconds since 1970. */
  readonly heldUntil: () => number;
}

/** If the lease ends within this many milliseconds, no record is begun, because all writes must end before the lease does. */
const CALLS_MS = 45_000;

/** Reads the rows in batches: if a chunk is repeated after a crash, most of its records are already written, and need only the read. */
async function readRows(
  { table }: JobContext,
  { companyId }: Pick<StoredBulk, "companyId">,
  members: readonly Member[],
): Promise<(member: Member) => Item | undefined> {
  const items = await table.batchGet(members.map(({ id }) => keys.prospect(companyId, id)));
  const rows = new Map<unknown, Item>(items.map((item) => [item.id, item]));
  return ({ id }) => rows.get(id);
}

/** Throws LeaseLost, transient errors and faults of the deployment: the job is then repeated. Other errors become the record's result. */
async function handleRecord(handling: Handling, member: Member, row: Item | undefined): Promise<StoredResult> {
  const { id } = member;
  const key = keys.prospect(handling.job.companyId, id);
  let attempts = 0;
  try {
    return await optimistic(async () =>
      handleOnce(handling, member, attempts++ === 0 ? row : await handling.context.table.get(key)),
    );
  } catch (error) {
    if (error instanceof ApiError) return { id, outcome: "failed", code: error.code, detail: error.message };
    if (error instanceof LeaseLost || isTransient(error) || isDeploymentFault(error)) throw error;
    log.error("record of a bulk job failed", { id, job: handling.job.id, ...errorFields(error) });
    return { id, outcome: "failed", code: "internal", detail: FAULT };
  }
}

/**
 * Returns the result of a record that an interrupted invocation of this job has written, or undefined. Users may have changed the record
 * since. If the job has restored the prospect, its notes are indexed here, because that invocation may not have done it.
 */
async function writtenBy(
  { table }: JobContext,
  job: StoredBulk,
  { id, bulk }: StoredProspect,
): Promise<StoredResult | undefined> {
  if (bulk?.jobId !== job.id) return undefined;
  const { before, after } = bulk;
  if (isRestored(after)) await indexNotesAgain(table, job.companyId, id);
  return { id, outcome: "changed", before, after };
}

const isRestored = (after: BulkFields | undefined): boolean => after?.deletedAt === null;

/** Returns the result of a record of a job that fails: `changed` if an earlier invocation has written it, otherwise `failed`. */
async function settleRecord(
  context: JobContext,
  job: StoredBulk,
  { id }: Member,
  row: Item | undefined,
): Promise<StoredResult> {
  const written = row === undefined ? undefined : await writtenBy(context, job, storedProspect(row));
  return written ?? { id, outcome: "failed", code: "internal", detail: FAULT };
}

const FAULT = "Something went wrong on our side.";

async function handleOnce(
  { context, job, caller, names, heldUntil }: Handling,
  member: Member,
  item: Item | undefined,
): Promise<StoredResult> {
  const { id } = member;
  const nowMs = context.clock.now();
  // Nothing may be written after the end of the lease. The next invocation may then have ended the job, and a request that changes the
  // user's rights no longer waits for the job.
  if (nowMs + CALLS_MS >= heldUntil()) throw new LeaseLost("the lease of the job has expired");
  if (item === undefined) return { id, outcome: "skipped", code: "not_found" };
  const current = storedProspect(item);
  const written = await writtenBy(context, job, current);
  if (written !== undefined) return written;
  if (caller === undefined) return { id, outcome: "unprocessed" };
  const isSeen = isInScope(caller, current) && (await isPublished(context.table, job.companyId, current.importId));
  if (!isSeen) return { id, outcome: "skipped", code: "not_found" };
  const decision = decisions[job.kind](job, { current, item, member, names, caller, nowMs });
  if ("skipped" in decision) return { id, outcome: "skipped", code: decision.skipped };
  const wanted = differing(current, decision.fields);
  if (isEmpty(wanted)) return { id, outcome: "unchanged" };
  const mark = { jobId: job.id, events: job.events };
  const write = { after: wanted, job: mark, dictionary: names, deletedIf: decision.deletedIf };
  const { before, after } = await writeByJob(context, caller, current, write);
  if (isRestored(after)) await indexNotesAgain(context.table, job.companyId, id);
  return { id, outcome: "changed", before, after };
}
