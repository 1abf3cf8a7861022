/** The API requests that pause, resume, cancel and undo bulk jobs. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Caller, isAdmin } from "#shared/auth/caller.ts";
import type { JobQueue } from "#shared/aws/sqs.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { optimistic, type Plan } from "#shared/db/plan.ts";
import { ApiError } from "#shared/errors.ts";
import { type BulkContext, end, pause, resume, startJob } from "#shared/jobs/bulk/queue.ts";
import { findJob, isFruitless, present, storedJob, undoableUntilMs } from "#shared/jobs/bulk/read.ts";
import type { Patience } from "#shared/jobs/bulk/rights.ts";
import type { Job, NewUndo } from "#shared/jobs/bulk/schema.ts";
import { hasEnded, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

type Jobs = Pick<JobQueue, "send">;

const PATIENCE: Patience = { tries: 25, ms: 200 };

/** Pauses a job. Waits at most five seconds, so the returned job may still be `running`. Throws `conflict` if the job has ended. */
export const pauseJob = /* @__PURE__ */ stopper("paused");

/** Cancels a job. The changes that the job has already made remain. Like `pauseJob`, the request waits until a running job has stopped. */
export const cancelJob = /* @__PURE__ */ stopper("cancelled");

function stopper(wanted: "paused" | "cancelled") {
  return async (
    context: ApiContext,
    jobs: Jobs,
    caller: Caller,
    id: number,
    { tries, ms }: Patience = PATIENCE,
  ): Promise<Job> => {
    let stored = await ask({ ...context, jobs }, caller, id, wanted);
    for (let left = tries; left > 0 && stored.state === "running" && stored.wanted === wanted; left--) {
      await sleep(ms);
      stored = await findJob(context, caller, id);
    }
    if (stored.state !== wanted && hasEnded(stored)) throw alreadyEnded(stored);
    return present(context, stored);
  };
}

const alreadyEnded = ({ state }: StoredBulk): ApiError => new ApiError("conflict", `The job is ${state} already.`);

/** For a running job, only sets `wanted` in its row, because only the invocation that runs it knows which records it has changed. */
const ask = (context: BulkContext, caller: Caller, id: number, wanted: "paused" | "cancelled"): Promise<StoredBulk> =>
  optimistic(async () => {
    const stored = await findJob(context, caller, id);
    const { companyId, state } = stored;
    if (state === wanted) return stored;
    if (hasEnded(stored)) throw alreadyEnded(stored);
    if (state === "running") {
      const change = { set: { wanted } };
      const update = { update: keys.bulkJob(companyId, id), change, when: equals("state", "running") };
      return StoredBulk.parse(await context.table.write(update));
    }
    const isSame = equals("state", state);
    if (wanted === "paused") await pause(context, stored, isSame);
    else await end(context, stored, { state: wanted }, isSame);
    return findJob(context, caller, id);
  });

/** Puts a paused job at the end of the company's queue. If the job still runs, only withdraws the request to pause it. */
export const resumeJob = async (context: ApiContext, jobs: Jobs, caller: Caller, id: number): Promise<Job> =>
  present(
    context,
    await optimistic(async () => {
      const stored = await findJob(context, caller, id);
      const { state, wanted } = stored;
      if (hasEnded(stored)) throw alreadyEnded(stored);
      if (state === "running" && wanted === "paused") {
        // Only a running job has `wanted`, so this condition also fails if the job no longer runs.
        const withdrawal = { change: { remove: ["wanted"] }, when: equals("wanted", "paused") };
        const update = keys.bulkJob(caller.companyId, id);
        return StoredBulk.parse(await context.table.write({ update, ...withdrawal }));
      }
      if (state !== "paused") return stored;
      await resume({ ...context, jobs }, stored);
      return findJob(context, caller, id);
    }),
  );

/** Begins a job that restores what the job `id` has changed and nobody has changed since. Throws `conflict` if this is not possible. */
export async function beginUndo(
  context: ApiContext,
  jobs: Jobs,
  caller: Caller,
  id: number,
  { events = "summary" }: NewUndo,
): Promise<Plan<Job>> {
  const { companyId } = caller;
  const [stored, names] = await Promise.all([findJob(context, caller, id), currentDictionary(context, companyId)]);
  const { action, changed, done, undoneBy } = stored;
  if (action?.delete === true && !isAdmin(caller)) {
    throw new ApiError("permission_denied", "Only admins and owners may restore deleted prospects.");
  }
  const until = undoableUntilMs(stored);
  if (until === undefined || until <= context.clock.now()) {
    throw new ApiError("conflict", `This job cannot be undone: ${whyNotUndoable(stored)}.`);
  }
  const earlier = undoneBy === undefined ? undefined : await storedJob(context.table, companyId, undoneBy);
  if (undoneBy !== undefined && (earlier === undefined || !isFruitless(earlier))) {
    throw new ApiError("conflict", `The job ${undoneBy} undoes this job already.`);
  }
  const undoId = await context.ids.next();
  const mark = {
    update: keys.bulkJob(companyId, id),
    change: { set: { undoneBy: undoId } },
    when: undoneBy === undefined ? missing("undoneBy") : equals("undoneBy", undoneBy),
  };
  const job = { id: undoId, kind: "undo" as const, events, total: changed, chunks: done, undoes: id, action };
  return startJob({ ...context, jobs }, caller, names, job, { writes: [mark] });
}

export function whyNotUndoable({ kind, endedAt, undoes }: Pick<StoredBulk, "kind" | "endedAt" | "undoes">): string {
  if (kind === "import_undo") return `it is the undo of the import ${undoes}`;
  if (kind === "undo") return `it is the undo of the job ${undoes}`;
  if (endedAt === undefined) return "it has not ended. Wait for its end, or cancel it";
  return `it ended at ${endedAt}, over ${limits.bulkKeptMs / 86_400_000} days ago`;
}
