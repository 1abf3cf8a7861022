/** The API request that undoes an import. */
import type { Caller } from "#shared/auth/caller.ts";
import type { JobQueue } from "#shared/aws/sqs.ts";
import type { ApiContext } from "#shared/context.ts";
import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";
import { chunksOf } from "#shared/jobs/bulk/members.ts";
import type { Job, NewUndo } from "#shared/jobs/bulk/schema.ts";
import { startJob } from "#shared/jobs/bulk/start.ts";
import { findImport } from "#shared/jobs/import/requests.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

export async function beginImportUndo(
  context: ApiContext,
  jobs: Pick<JobQueue, "send">,
  caller: Caller,
  importId: number,
  { events = "summary" }: NewUndo,
): Promise<Job> {
  const { companyId } = caller;
  const [{ state, dryRun, imported, prospectBlocks }, names, id] = await Promise.all([
    findImport(context, companyId, importId),
    currentDictionary(context, companyId),
    context.ids.next(),
  ]);
  if (state !== "completed" || dryRun === true) {
    throw new ApiError(
      "conflict",
      "Only a completed import can be undone. An import that was cancelled or has failed shows no prospects.",
    );
  }
  const chunks = chunksOf(imported);
  return startJob(context, jobs, caller, names, {
    id,
    kind: "import_undo",
    events,
    total: imported,
    chunks,
    undoes: importId,
    // The ids of the created prospects are consecutive. The first one is the first id of a block of 128 ids.
    ...(prospectBlocks !== null && { firstId: prospectBlocks.from * IDS_PER_PARTITION }),
  });
}
