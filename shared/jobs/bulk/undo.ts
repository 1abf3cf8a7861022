/** Undoes a bulk job. The undo restores only fields that nobody has changed since the job changed them. */
import { type Caller, isAdmin } from "#shared/auth/caller.ts";
import type { JobQueue } from "#shared/aws/sqs.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { ApiError } from "#shared/errors.ts";
import { startJob } from "#shared/jobs/bulk/queue.ts";
import { findJob, isFruitless, storedJob, undoableUntilMs } from "#shared/jobs/bulk/read.ts";
import type { Job, NewUndo } from "#shared/jobs/bulk/schema.ts";
import type { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Throws `conflict` if the job cannot be undone or another job undoes it, also if several requests try this at the same time. */
export async function beginUndo(
  context: ApiContext,
  jobs: Pick<JobQueue, "send">,
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
  const earlier = undoneBy === undefined ? undefined : await storedJob(context, companyId, undoneBy);
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
