/** The queue of a company's bulk jobs: one row, which names the running job. So at most one job of a company runs at a time. */
import type { Caller } from "#shared/auth/caller.ts";
import type { JobId, JobQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, type Condition, equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { optimistic, type Plan } from "#shared/db/plan.ts";
import type { Reads } from "#shared/db/reads.ts";
import { ApiError, failedAt } from "#shared/errors.ts";
import { presentJob, storedJobs } from "#shared/jobs/bulk/read.ts";
import type { Job } from "#shared/jobs/bulk/schema.ts";
import { hasEnded, noCounts, type StoredBulk, StoredQueue } from "#shared/jobs/bulk/stored.ts";
import { announce, due, newJobRow, notDue } from "#shared/jobs/job.ts";
import * as limits from "#shared/limits.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

const emptyQueue: StoredQueue = { type: "bulkQueue", running: null, waiting: [], paused: [], version: 0 };

export async function readQueue(table: Reads, companyId: number): Promise<StoredQueue> {
  const item = await table.get(keys.bulkQueue(companyId));
  return item === undefined ? emptyQueue : StoredQueue.parse(item);
}

export async function jobsIn(
  table: Reads,
  companyId: number,
  { running, waiting, paused }: StoredQueue,
): Promise<StoredBulk[]> {
  const ids = [...(running === null ? [] : [running]), ...waiting, ...paused];
  const jobs = new Map((await storedJobs(table, companyId, ids)).map((job) => [job.id, job]));
  return ids.flatMap((id) => jobs.get(id) ?? []).filter((job) => !hasEnded(job));
}

/** Returns the queue with the job at the end of the list `to`, or without the job if `to` is undefined. */
function moved(queue: StoredQueue, id: number, to?: "waiting" | "paused"): StoredQueue {
  const isOther = (one: number): boolean => one !== id;
  const waiting = queue.waiting.filter(isOther);
  const paused = queue.paused.filter(isOther);
  const others = { ...queue, running: queue.running === id ? null : queue.running, waiting, paused };
  return to === undefined ? others : { ...others, [to]: [...others[to], id] };
}

/**
 * Returns the writes that store the queue `after`. If no job runs, they also admit the first job that waits (`admitted`): it becomes the
 * running one. The caller writes the row of the job `ownId` itself.
 */
function queueChange(companyId: number, before: StoredQueue, after: StoredQueue, nowMs: number, ownId: number) {
  const [first, ...waiting] = after.waiting;
  const admits = after.running === null && first !== undefined;
  const next = admits ? { ...after, running: first, waiting } : after;
  const put = { ...keys.bulkQueue(companyId), ...next, version: before.version + 1 };
  const when = before.version === 0 ? absent : equals("version", before.version);
  const writes: Write[] = [{ put, when }];
  if (admits && first !== ownId) {
    const change = { set: { isAdmitted: true, ...due(nowMs) } };
    writes.push({ update: keys.bulkJob(companyId, first), change, when: equals("state", "queued") });
  }
  return { writes, admitted: admits ? first : undefined };
}

/** Moves a job in the queue, and writes `own` in the same transaction. Tries again if this fails only because the queue has changed. */
async function moveJob(
  { table, clock, jobs }: BulkContext,
  { companyId, id }: JobId,
  to: "waiting" | "paused" | undefined,
  own: (nowMs: number, isAdmitted: boolean) => readonly Write[],
): Promise<void> {
  const admitted = await optimistic(
    async () => {
      const queue = await readQueue(table, companyId);
      const nowMs = clock.now();
      const change = queueChange(companyId, queue, moved(queue, id, to), nowMs, id);
      await table.transact([...own(nowMs, change.admitted === id), ...change.writes]);
      return change.admitted;
    },
    (error) => failedAt(error, 0) === undefined,
  );
  await announceAdmitted(jobs, companyId, admitted);
}

async function announceAdmitted(jobs: BulkContext["jobs"], companyId: number, id: number | undefined) {
  if (id !== undefined) await announce(jobs, { kind: "bulk", companyId, id });
}

/** Pauses a job whose row meets `when`. If nobody resumes it for a month, the sweeper finds it by `dueAt`, and an invocation cancels it. */
export const pause = (context: BulkContext, stored: StoredBulk, when: Condition): Promise<void> =>
  moveJob(context, stored, "paused", (nowMs) => {
    const set: Partial<StoredBulk> = { state: "paused", isOpen: false, isAdmitted: false, updatedAt: iso(nowMs) };
    const change = { set: { ...set, ...due(nowMs + limits.bulkKeptMs) }, remove: ["wanted", "runsUntil"] };
    return [{ update: keys.bulkJob(stored.companyId, stored.id), change, when }];
  });

export const resume = (context: BulkContext, stored: StoredBulk): Promise<void> =>
  moveJob(context, stored, "waiting", (nowMs, isAdmitted) => {
    const set: Partial<StoredBulk> = { state: "queued", isAdmitted, updatedAt: iso(nowMs) };
    const change = isAdmitted ? { set: { ...set, ...due(nowMs) } } : { set, remove: notDue };
    return [{ update: keys.bulkJob(stored.companyId, stored.id), change, when: equals("state", "paused") }];
  });

/** Ends a job whose row meets `when`. DynamoDB deletes the rows of the job at `expiresAt`. */
export const end = (
  context: BulkContext,
  stored: StoredBulk,
  how: Pick<StoredBulk, "state" | "failure">,
  when: Condition,
): Promise<void> =>
  moveJob(context, stored, undefined, (nowMs) => {
    const { companyId, id, createdAt } = stored;
    const expiresAt = Math.ceil((nowMs + limits.bulkKeptMs) / 1_000);
    const at = iso(nowMs);
    const ended: Partial<StoredBulk> = { isOpen: false, isAdmitted: false, endedAt: at, updatedAt: at, expiresAt };
    const change = { set: { ...how, ...ended }, remove: [...notDue, "wanted", "runsUntil"] };
    return [
      { update: keys.bulkJob(companyId, id), change, when },
      { update: keys.bulkJobEntry(companyId, createdAt, id), change: { set: { expiresAt } } },
    ];
  });

export type NewJob = Pick<StoredBulk, "id" | "kind" | "events" | "total" | "chunks"> &
  Partial<Pick<StoredBulk, "action" | "undoes" | "firstId" | "territoryId">>;

/** Throws if the new job must not be created beside the jobs in the queue. Called again if the queue changes meanwhile. */
export type Guard = (queue: StoredQueue) => Promise<void>;

export type BulkContext = ApiContext & { readonly jobs: Pick<JobQueue, "send"> };

/** The ids of the job's records must already be stored. Throws `conflict` if too many jobs wait or are paused. */
export async function startJob(
  context: BulkContext,
  caller: Caller,
  names: Dictionary,
  job: NewJob,
  { writes = [], guard }: { readonly writes?: readonly Write[]; readonly guard?: Guard | undefined } = {},
): Promise<Plan<Job>> {
  const { companyId, userId } = caller;
  const queue = await readQueue(context.table, companyId);
  requireRoom(queue);
  await guard?.(queue);
  const nowMs = context.clock.now();
  const change = queueChange(companyId, queue, moved(queue, job.id, "waiting"), nowMs, job.id);
  const isAdmitted = change.admitted === job.id;
  const stored: StoredBulk = {
    type: "bulkJob",
    ...newJobRow(caller, job.id, nowMs),
    ...job,
    state: "queued",
    ...noCounts,
    done: 0,
    isOpen: false,
    isAdmitted,
  };
  const { id, createdAt } = stored;
  const row = { ...keys.bulkJob(companyId, id), ...stored, ...(isAdmitted && due(nowMs)) };
  const entry = { ...keys.bulkJobEntry(companyId, createdAt, id), type: "bulkJobEntry", id, createdBy: userId };
  const own: Write[] = [...writes, { put: row, when: absent }, { put: entry }];
  return {
    writes: [...own, ...change.writes],
    answer: presentJob(stored, names),
    // If the queue's row, the first of `change.writes`, could not be written, another request has changed it.
    refused: ({ failed }) =>
      failed[0]?.index === own.length ? startJob(context, caller, names, job, { writes, guard }) : undefined,
    after: () => announceAdmitted(context.jobs, companyId, change.admitted),
  };
}

export function requireRoom({ waiting, paused }: StoredQueue): void {
  if (waiting.length + paused.length < limits.bulkWaiting) return;
  throw new ApiError("conflict", `A company may have ${limits.bulkWaiting} jobs that wait or are paused.`);
}
