/** Begins an import by an upload: a row that waits for the file, and a link to send it to. */
import type { Caller } from "#shared/auth/caller.ts";
import type { Links, UploadHeaders } from "#shared/aws/links.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { packed } from "#shared/db/packed.ts";
import { ApiError } from "#shared/errors.ts";
import type { NewImport } from "#shared/jobs/import/new-import.ts";
import { beginning } from "#shared/jobs/import/opening.ts";
import { presentImport } from "#shared/jobs/import/read.ts";
import { type Import, nothing, type StoredImport, type StoredJob } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";

/**
 * The sweeper asks for the file after so long, and again each time it looks, until the time for the upload is over: S3 tells of it
 * once, and the run that hears of it may die before it has written so. Later than most uploads take.
 */
export const LOOK_MS = 5 * 60_000;

/** Throws payload_too_large for a file that is known to be, and conflict where too many imports are open. */
export async function beginImport(
  context: ApiContext,
  links: Links,
  caller: Caller,
  input: NewImport,
): Promise<Import> {
  const { companyId } = caller;
  if (input.bytes !== undefined && input.bytes > limits.jobBytes) {
    throw new ApiError("payload_too_large", `The file may hold at most ${limits.jobBytes} bytes.`);
  }
  await checkOpen(context, companyId);
  const stored = newImport(context, caller, await context.ids.next(), input);
  const answer = await presentImport(context, links, caller, stored);
  await context.commit(beginning(stored, context.clock.now() + LOOK_MS), answer);
  return answer;
}

async function checkOpen({ table }: ApiContext, companyId: number): Promise<void> {
  let open = 0;
  for await (const _ of table.query(keys.openImports(companyId))) open++;
  if (open >= limits.openJobs) {
    throw new ApiError("conflict", `At most ${limits.openJobs} imports of a company wait or run at once.`);
  }
}

function newImport({ clock }: ApiContext, caller: Caller, id: number, input: NewImport): StoredImport {
  const nowMs = clock.now();
  const now = iso(nowMs);
  const { companyId, userId, role, permissions } = caller;
  const job: StoredJob = {
    mapping: input.mapping ?? null,
    caller: { role, permissions: [...permissions] },
    headers: uploadHeaders(input),
    uploadUntil: nowMs + limits.fileLinkSeconds * 1_000,
    etag: null,
    progress: { step: "check", row: 0, done: nothing, skipped: 0, stretches: 0, report: null, newTags: [] },
    total: null,
    first: null,
    startedAt: null,
    runs: 0,
    hasReport: false,
  };
  return {
    type: "import",
    id,
    companyId,
    state: "awaiting_upload",
    processed: 0,
    imported: 0,
    skipped: 0,
    errors: packed([]),
    prospectBlocks: null,
    addressBlocks: null,
    noteBlocks: null,
    createdBy: userId,
    createdAt: now,
    updatedAt: now,
    version: 1,
    runsUntil: 0,
    dryRun: input.dryRun === true,
    job,
  };
}

const uploadHeaders = ({ bytes, sha256 }: NewImport): UploadHeaders => ({
  "content-type": "text/csv",
  "if-none-match": "*",
  ...(bytes !== undefined && { "content-length": String(bytes) }),
  ...(sha256 !== undefined && { "x-amz-checksum-sha256": sha256 }),
});
