/** Undoes an import as a bulk job, which deletes each prospect of the import, unless somebody has changed it since. */
import { type Caller, may } from "#shared/auth/caller.ts";
import type { JobQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, type Condition, missing } from "#shared/db/expression.ts";
import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { ApiError } from "#shared/errors.ts";
import { chunksOf, consecutiveIds } from "#shared/jobs/bulk/files.ts";
import type { Candidate, Decision, Kind } from "#shared/jobs/bulk/kind.ts";
import { jobsIn } from "#shared/jobs/bulk/queue.ts";
import { excludedBy } from "#shared/jobs/bulk/read.ts";
import type { Job, NewUndo } from "#shared/jobs/bulk/schema.ts";
import { startJob } from "#shared/jobs/bulk/start.ts";
import type { StoredBulk, StoredQueue } from "#shared/jobs/bulk/stored.ts";
import { findVisibleImport } from "#shared/jobs/import/requests.ts";
import { notesAttributes } from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

export const importUndoKind: Kind = {
  allows: (caller) => may(caller, "canManageProspects"),
  members:
    (_, { firstId = 0, total }) =>
    async (chunk) =>
      consecutiveIds(firstId, total, chunk).map((id) => ({ id })),
  decide,
};

/** No note was added, changed or deleted since the import wrote the prospect's row. */
const hasSameNotes = (): Condition => all(...notesAttributes.map(missing));

function decide({ undoes }: StoredBulk, { current, item, nowMs }: Candidate): Decision {
  if (current.deletedAt !== undefined || current.importId !== String(undoes)) return { skipped: "not_found" };
  // A change of the prospect or its appointments raises the version. A change of a note sets `notesAttributes` instead.
  const isUnchanged = current.version === 1 && notesAttributes.every((name) => item[name] === undefined);
  return isUnchanged ? { fields: { deletedAt: iso(nowMs) }, deletedIf: hasSameNotes() } : { skipped: "changed_since" };
}

export async function beginImportUndo(
  context: ApiContext,
  jobs: Pick<JobQueue, "send">,
  caller: Caller,
  importId: number,
  { events = "summary" }: NewUndo,
): Promise<Plan<Job>> {
  const { companyId } = caller;
  const { state, dryRun, imported, prospectBlocks } = await findVisibleImport(context, caller, importId);
  if (state !== "completed" || dryRun === true) {
    throw new ApiError(
      "conflict",
      "Only a completed import can be undone. An import that was cancelled or has failed shows no prospects.",
    );
  }
  const [names, id] = await Promise.all([currentDictionary(context, companyId), context.ids.next()]);
  const chunks = chunksOf(imported);
  const job = {
    id,
    kind: "import_undo" as const,
    events,
    total: imported,
    chunks,
    undoes: importId,
    // The ids of the created prospects are consecutive, from the first one of a block.
    firstId: prospectBlocks === null ? undefined : prospectBlocks.from * IDS_PER_PARTITION,
  };
  const guard = (queue: StoredQueue) => refuseSecondUndo(context, caller, importId, queue);
  return startJob({ ...context, jobs }, caller, names, job, { guard });
}

/** Throws `conflict` if an undo of this import has not ended. */
async function refuseSecondUndo({ table }: ApiContext, caller: Caller, importId: number, queue: StoredQueue) {
  const open = (await jobsIn(table, caller.companyId, queue)).find(
    ({ kind, undoes }) => kind === "import_undo" && undoes === importId,
  );
  if (open === undefined) return;
  throw excludedBy(caller, open, "already undoes this import and has not ended");
}
