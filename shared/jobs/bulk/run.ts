/**
 * Executes a bulk job for one Lambda invocation. The job's lease allows only one invocation of the job at a time, and the company's queue
 * only one job of the company.
 */
import { mapConcurrently } from "#shared/all-ended.ts";
import { type JobId, oneJob } from "#shared/aws/sqs.ts";
import type { JobContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { failedAt } from "#shared/errors.ts";
import type { Kind, Kinds, Member } from "#shared/jobs/bulk/kind.ts";
import {
  announce,
  movedToPaused,
  queueChange,
  readQueue,
  removed,
  whileQueueChanges,
} from "#shared/jobs/bulk/queue.ts";
import { handleRecord, readRows, settleRecord } from "#shared/jobs/bulk/record.ts";
import { storeResults } from "#shared/jobs/bulk/results.ts";
import { authorOf } from "#shared/jobs/bulk/rights.ts";
import {
  countsInChunk,
  hasEnded,
  type Outcome,
  plus,
  StoredBulk,
  type StoredResult,
  sumOf,
} from "#shared/jobs/bulk/stored.ts";
import { ended, paused } from "#shared/jobs/bulk/transitions.ts";
import { changesAtOnce } from "#shared/jobs/changes-at-once.ts";
import { fruitlessRuns, JobLease, LeaseLost, MAX_FRUITLESS_RUNS, RESERVE_MS } from "#shared/jobs/lease.ts";
import * as limits from "#shared/limits.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** The senders are an API request, the job that ended before, an invocation that runs out of time, and the sweeper. */
export const BulkMessage = oneJob("bulk");

/** Before each group of this size, the job reads the user's rights and the dictionary again. */
const TOGETHER = 64;
/**
 * An invocation stops after this time and sends a message for the next one. SQS is fair between companies, so that others get their turn.
 */
const TURN_MS = 60_000;
/**
 * Returns the function that executes a job of these kinds. It may be interrupted and called again, and two calls may overlap. Throws
 * LeaseLost if another invocation has taken the job.
 */
export const bulkRunner =
  (kinds: Kinds) =>
  async (context: JobContext, { companyId, id }: JobId, remainingMs: () => number): Promise<void> => {
    const key = keys.bulkJob(companyId, id);
    const item = await context.table.get(key);
    if (item === undefined) return;
    const stored = StoredBulk.parse(item);
    const now = context.clock.now();
    const turnEnd = now + TURN_MS;
    // `JobLease.isLate` stops the work at RESERVE_MS. The end of a turn needs no reserve, so RESERVE_MS is added here.
    const remaining = (): number => Math.min(remainingMs(), turnEnd - context.clock.now() + RESERVE_MS);
    const lease = new JobLease(context, key, (row) => StoredBulk.parse(row), stored, remaining);
    if (stored.state === "paused") {
      const isOver = Date.parse(stored.updatedAt) + limits.bulkKeptMs <= now;
      return isOver ? end(context, lease, { state: "cancelled" }) : undefined;
    }
    if (hasEnded(stored) || !stored.isAdmitted || stored.runsUntil > now) return;
    const kind = kinds[stored.kind];
    if (kind === undefined) throw new Error(`no function executes bulk jobs of the kind ${stored.kind}`);
    await lease.save({ state: "running", runs: stored.runs + 1, isOpen: true });
    try {
      if (stored.runs < MAX_FRUITLESS_RUNS) await work(context, lease, kind, stored.isOpen);
      else await fail(context, lease, kind, stored.runs === MAX_FRUITLESS_RUNS);
    } catch (error) {
      if (error instanceof LeaseLost) throw error;
      // The lease is released, so that a retry need not wait until it expires.
      await lease.release({ runs: fruitlessRuns(lease.stored.runs, error) }).catch(() => undefined);
      throw error;
    }
  };

type Lease = JobLease<StoredBulk>;

/**
 * Handles the chunks one after the other. If `mustSettle`, the previous invocation was interrupted and may have written records of the next
 * chunk, so this chunk is handled before the job is paused or cancelled.
 */
async function work(context: JobContext, lease: Lease, kind: Kind, mustSettle: boolean): Promise<void> {
  const readMembers = kind.members(context, lease.stored);
  for (let settles = mustSettle; ; settles = false) {
    const { companyId, id, wanted, done, chunks, failure } = lease.stored;
    if (failure !== undefined) return end(context, lease, { state: "failed", failure });
    if (done >= chunks) return end(context, lease, { state: "completed" });
    if (wanted === "cancelled" && !settles) return end(context, lease, { state: "cancelled" });
    if (wanted === "paused" && !settles) return pause(context, lease);
    if (lease.isLate()) {
      await lease.release({ isOpen: false });
      return context.jobs.send({ kind: "bulk", companyId, id });
    }
    const { results, isAllowed } = await handleChunk(context, lease, kind, await readMembers(done));
    // Saved in one write with the counts, so that the next invocation ends the job if this one is interrupted. The job must not continue
    // after a chunk with unprocessed records.
    const lost = { failure: "The user who began the job may no longer do this." };
    await storeChunk(context, lease, results, { runs: 0, ...(isAllowed ? {} : lost) });
  }
}

/**
 * Ends a job after too many invocations without progress. If `settles` is true, records of the next chunk that they have written count as
 * changed, so that an undo restores them. The others count as failed.
 */
async function fail(context: JobContext, lease: Lease, kind: Kind, settles: boolean): Promise<void> {
  const { done, chunks, runs } = lease.stored;
  if (settles && done < chunks) {
    const members = await kind.members(context, lease.stored)(done);
    const rowOf = await readRows(context, lease.stored, members);
    const settle = (member: Member): Promise<StoredResult> =>
      settleRecord(context, lease.stored, member, rowOf(member));
    await storeChunk(context, lease, await mapConcurrently(members, changesAtOnce(), settle), { runs });
  }
  await end(context, lease, { state: "failed", failure: "The job could not be completed." });
}

async function storeChunk(
  context: JobContext,
  lease: Lease,
  results: readonly StoredResult[],
  set: Pick<StoredBulk, "runs" | "failure">,
): Promise<void> {
  const { companyId, id, done } = lease.stored;
  await storeResults(context.objects, { companyId, id }, done, results);
  await lease.save({ done: done + 1, ...set, ...plus(lease.stored, countsOf(results)) });
}

interface Handled {
  readonly results: StoredResult[];
  /** False if the user has lost the right. The remaining records of the chunk are then unprocessed. */
  readonly isAllowed: boolean;
}

async function handleChunk(context: JobContext, lease: Lease, kind: Kind, members: Member[]): Promise<Handled> {
  const results: StoredResult[] = [];
  let isAllowed = true;
  const heldUntil = (): number => lease.stored.runsUntil;
  for (let at = 0; at < members.length; at += TOGETHER) {
    const names = await currentDictionary(context, lease.stored.companyId);
    const { version, caller } = authorOf(names, lease.stored);
    // No write with older rights is still running. A request that changes the user's rights waits for the new `authorVersion`.
    const progress = progressAfter(lease.stored, results);
    if (version !== lease.stored.authorVersion) await lease.save({ ...progress, authorVersion: version });
    else await lease.heartbeat(progress);
    // A right that comes back before the end of the chunk does not continue the job.
    isAllowed &&= caller !== undefined && kind.allows(caller, lease.stored);
    const allowed = isAllowed ? caller : undefined;
    const some = members.slice(at, at + TOGETHER);
    const rowOf = await readRows(context, lease.stored, some);
    const handle = (member: Member): Promise<StoredResult> =>
      handleRecord({ context, job: lease.stored, kind, caller: allowed, names, heldUntil }, member, rowOf(member));
    results.push(...(await mapConcurrently(some, changesAtOnce(), handle)));
  }
  return { results, isAllowed };
}

function countsOf(results: readonly StoredResult[]): Record<Outcome, number> {
  const of = (wanted: Outcome): number => results.filter(({ outcome }) => outcome === wanted).length;
  return { changed: of("changed"), unchanged: of("unchanged"), skipped: of("skipped"), failed: of("failed") };
}

/**
 * Returns `inChunk`: the counts of the current chunk. They are separate, because the next invocation handles and counts these records again
 * if this one is killed. Returns nothing if the saved counts are as high, so that the counts that clients see never decrease.
 */
function progressAfter(stored: StoredBulk, results: readonly StoredResult[]): Pick<StoredBulk, "inChunk"> {
  const counts = countsOf(results);
  return sumOf(counts) > sumOf(countsInChunk(stored)) ? { inChunk: { chunk: stored.done, ...counts } } : {};
}

/** Ends the job and lets the company's next job run. Throws LeaseLost if another invocation has taken the job. */
const end = (context: JobContext, lease: Lease, how: Pick<StoredBulk, "state" | "failure">): Promise<void> =>
  leave(context, lease, removed, (nowMs) => ended(lease.stored, how, nowMs));

/** Pauses the job and lets the company's next job run. Throws LeaseLost if another invocation has taken the job. */
const pause = (context: JobContext, lease: Lease): Promise<void> =>
  leave(context, lease, movedToPaused, (nowMs) => [paused(lease.stored, nowMs)]);

async function leave(
  context: JobContext,
  { stored: { companyId, id } }: Lease,
  queueAfter: typeof removed,
  own: (nowMs: number) => readonly Write[],
): Promise<void> {
  try {
    const admitted = await whileQueueChanges(async () => {
      const queue = await readQueue(context.table, companyId);
      const nowMs = context.clock.now();
      const change = queueChange(companyId, queue, queueAfter(queue, id), nowMs, id);
      await context.table.transact([...own(nowMs), ...change.writes]);
      return change.admitted;
    });
    await announce(context.jobs, companyId, admitted);
  } catch (error) {
    throw failedAt(error, 0) === undefined ? error : new LeaseLost("another run has written the row of the job");
  }
}
