/** Puts a new bulk job into the company's queue. */
import type { Caller } from "#shared/auth/caller.ts";
import type { JobQueue } from "#shared/aws/sqs.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { ApiError } from "#shared/errors.ts";
import { announceAdmitted, enqueued, openJobs, queueChange, readQueue } from "#shared/jobs/bulk/queue.ts";
import { presentJob } from "#shared/jobs/bulk/read.ts";
import type { Job } from "#shared/jobs/bulk/schema.ts";
import type { StoredBulk, StoredQueue } from "#shared/jobs/bulk/stored.ts";
import { due, newJobRow } from "#shared/jobs/job.ts";
import * as limits from "#shared/limits.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

export type NewJob = Pick<StoredBulk, "id" | "kind" | "events" | "total" | "chunks"> &
  Partial<Pick<StoredBulk, "action" | "undoes" | "firstId" | "territoryId">>;

/** Throws if the new job must not be created beside the jobs in the queue. Called again if the queue changes meanwhile. */
export type Guard = (queue: StoredQueue) => Promise<void>;

export type BulkContext = ApiContext & { readonly jobs: Pick<JobQueue, "send"> };

interface StartOptions {
  readonly writes?: readonly Write[];
  readonly guard?: Guard | undefined;
}

/**
 * Writes the job and its place in the queue in one transaction with `writes`. The ids of its records must already be stored. If only the
 * queue has changed meanwhile, they are not stored again. Throws `conflict` if too many jobs wait or are paused.
 */
export async function startJob(
  context: BulkContext,
  caller: Caller,
  names: Dictionary,
  job: NewJob,
  { writes = [], guard }: StartOptions = {},
): Promise<Plan<Job>> {
  const { companyId, userId } = caller;
  const queue = await readQueue(context.table, companyId);
  requireRoom(queue);
  await guard?.(queue);
  const nowMs = context.clock.now();
  const change = queueChange(companyId, queue, enqueued(queue, job.id), nowMs, job.id);
  const isAdmitted = change.admitted === job.id;
  const stored: StoredBulk = { ...newJobRow(caller, job.id, nowMs), ...beginning, ...job, isAdmitted };
  const { id, createdAt } = stored;
  const row = { ...keys.bulkJob(companyId, id), ...stored, ...(isAdmitted && due(nowMs)) };
  const entry = { ...keys.bulkJobEntry(companyId, createdAt, id), type: "bulkJobEntry", id, createdBy: userId };
  const own: Write[] = [...writes, { put: row, when: absent }, { put: entry }];
  return {
    writes: [...own, ...change.writes],
    answer: presentJob(stored, names),
    // The row of the queue is the first of its writes.
    refused: ({ failed }) =>
      failed[0]?.index === own.length ? startJob(context, caller, names, job, { writes, guard }) : undefined,
    after: () => announceAdmitted(context.jobs, companyId, change.admitted),
  };
}

/** Throws `conflict` if the company already has the maximum number of jobs that wait or are paused. */
export function requireRoom(queue: StoredQueue): void {
  if (openJobs(queue) < limits.bulkWaiting) return;
  throw new ApiError("conflict", `A company may have ${limits.bulkWaiting} jobs that wait or are paused.`);
}

const beginning = {
  type: "bulkJob",
  state: "queued",
  changed: 0,
  unchanged: 0,
  skipped: 0,
  failed: 0,
  done: 0,
  isOpen: false,
} as const;
