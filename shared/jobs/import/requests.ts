/** The API requests for imports: they begin uploads, and read, list, cancel and undo imports. */
import * as z from "zod/mini";
import { type Caller, isAdmin } from "#shared/auth/caller.ts";
import type { Links, UploadHeaders } from "#shared/aws/links.ts";
import type { JobQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import { unpacked } from "#shared/db/packed.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { explain } from "#shared/documentation.ts";
import { ApiError, existing, notFound } from "#shared/errors.ts";
import { chunksOf } from "#shared/jobs/bulk/files.ts";
import { jobsIn, startJob } from "#shared/jobs/bulk/queue.ts";
import { excludedBy } from "#shared/jobs/bulk/read.ts";
import type { Job, NewUndo } from "#shared/jobs/bulk/schema.ts";
import type { StoredQueue } from "#shared/jobs/bulk/stored.ts";
import { opening } from "#shared/jobs/import/lifecycle.ts";
import {
  type Import,
  type ImportPage,
  type ImportQuery,
  type ImportSummary,
  MATCH_BY_TEXT,
  matchByWithOnMatch,
  ON_MATCH_TEXT,
  type Upload,
} from "#shared/jobs/import/schema.ts";
import { newImport, RowFaults, StoredImport } from "#shared/jobs/import/stored.ts";
import { due, isUntouched, revoked } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { MAPPING_TEXT, Mapping } from "#shared/prospects/csv/header.ts";
import { MatchBy, OnMatch } from "#shared/prospects/match-key.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";
import { Id, named } from "#shared/schema.ts";

export const NewImport = named(
  "NewImport",
  z
    .object({
      bytes: z.optional(z.int().check(z.minimum(1))),
      sha256: z.optional(z.string().check(z.regex(/^[A-Za-z0-9+/]{43}=$/, "must be 32 bytes in base64"))),
      dryRun: z.optional(z.boolean()),
      mapping: z.optional(Mapping),
      matchBy: z.optional(MatchBy),
      onMatch: z.optional(OnMatch),
    })
    .check(matchByWithOnMatch),
  "The file that will be uploaded, and what the service does with it.",
);
export type NewImport = z.infer<typeof NewImport>;

/* @__PURE__ */ explain([NewImport], () => ({
  fields: {
    bytes: `Length of the file, at most ${limits.jobBytes}. The bucket then refuses any other length.`,
    sha256: "SHA-256 digest of the file in base64. The bucket then refuses any other bytes.",
    dryRun: "If true, the service only checks the file and writes nothing.",
    mapping: MAPPING_TEXT,
    matchBy: MATCH_BY_TEXT,
    onMatch: ON_MATCH_TEXT,
  },
  example: { bytes: 184_320, mapping: { "Full name": "name", "Home phone": "phone", id: null } },
}));

/** The sweeper looks for the uploaded file after this time, because S3 sends only one message, and its invocation may be interrupted. */
export const LOOK_MS = 5 * 60_000;

/** Throws `payload_too_large` if the announced size is too large, and `conflict` if the company has too many open imports. */
export async function beginImport(
  context: ApiContext,
  links: Links,
  caller: Caller,
  input: NewImport,
): Promise<Plan<Import>> {
  const { companyId } = caller;
  if (input.bytes !== undefined && input.bytes > limits.jobBytes) {
    throw new ApiError("payload_too_large", `The file may hold at most ${limits.jobBytes} bytes.`);
  }
  await checkOpen(context, companyId);
  const nowMs = context.clock.now();
  const stored: StoredImport = {
    ...newImport(caller, await context.ids.next(), nowMs, input),
    state: "awaiting_upload",
    upload: { headers: uploadHeaders(input), untilMs: nowMs + limits.fileLinkSeconds * 1_000 },
  };
  const answer = await presentImport(context, links, caller, stored);
  return { writes: opening(stored, nowMs + LOOK_MS), answer };
}

async function checkOpen({ table }: ApiContext, companyId: number): Promise<void> {
  const open = await Array.fromAsync(table.query(keys.openImports(companyId)));
  if (open.length >= limits.openJobs) {
    throw new ApiError("conflict", `A company can have at most ${limits.openJobs} imports that wait or run.`);
  }
}

const uploadHeaders = ({ bytes, sha256 }: NewImport): UploadHeaders => ({
  "content-type": "text/csv",
  "if-none-match": "*",
  ...(bytes !== undefined && { "content-length": String(bytes) }),
  ...(sha256 !== undefined && { "x-amz-checksum-sha256": sha256 }),
});

export async function findImport({ table }: Pick<ApiContext, "table">, companyId: number, id: number) {
  return StoredImport.parse(existing(await table.get(keys.import(companyId, id)), "import"));
}

/** Returns undefined for admins and owners, who see all imports of the company. Other users see those that they have begun. */
const ownerOfSeen = (caller: Caller): number | undefined => (isAdmin(caller) ? undefined : caller.userId);

export async function findVisibleImport(context: Pick<ApiContext, "table">, caller: Caller, id: number) {
  const { companyId } = caller;
  const userId = ownerOfSeen(caller);
  // Does not read the row of the import, which may be large: the read units and the time would show that the import exists.
  const isHidden =
    userId !== undefined && (await context.table.get(keys.importEntry(companyId, id, userId))) === undefined;
  if (isHidden) throw notFound("import");
  return findImport(context, companyId, id);
}

export async function readImport(context: ApiContext, links: Links, caller: Caller, id: number): Promise<Import> {
  return presentImport(context, links, caller, await findVisibleImport(context, caller, id));
}

/** Only the user who began the import gets the upload link, because the file is imported with this user's rights. */
async function presentImport(
  { clock }: Pick<ApiContext, "clock">,
  links: Links,
  { userId }: Caller,
  stored: StoredImport,
): Promise<Import> {
  const { state, hasReport, encoding = null, ignoredColumns, warnings, columns } = stored;
  const report = importKeys.report(stored);
  const isUploader = state === "awaiting_upload" && stored.createdBy === userId;
  return {
    ...summaryOf(stored),
    encoding,
    ignoredColumns,
    warnings,
    columns,
    errors: unpacked(RowFaults, stored.errors),
    errorReport: hasReport ? await links.download(report, limits.fileLinkSeconds, clock.now()) : null,
    upload: isUploader ? await uploadOf(links, stored, clock.now()) : null,
  };
}

async function uploadOf(links: Links, stored: StoredImport, nowMs: number): Promise<Upload | null> {
  const { upload } = stored;
  if (upload === undefined || upload.untilMs - nowMs < 1_000) return null;
  const { headers, untilMs } = upload;
  const seconds = Math.floor((untilMs - nowMs) / 1_000);
  const { url } = await links.upload(importKeys.uploaded(stored), headers, seconds, nowMs);
  return { method: "PUT", url, headers: defined(headers), expiresAt: iso(untilMs) };
}

const defined = (headers: UploadHeaders): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));

/** Returns the import as the list shows it. New prospects count only after its completion, because a failed import deletes them. */
export function summaryOf(stored: StoredImport): ImportSummary {
  const { id, state, dryRun, processed, updated, skipped, failure = null, createdBy, createdAt, updatedAt } = stored;
  const imported = state === "completed" ? stored.imported : 0;
  const written = state === "running" ? stored.written : imported + updated;
  const created = { createdByUserId: createdBy, createdAt };
  const rows = { processed, written: dryRun ? 0 : written, imported, updated, skipped };
  return { id, state, dryRun, ...rows, failure, ...created, updatedAt };
}

const Entry = z.object({ id: Id });

export async function listImports(
  { table }: Pick<ApiContext, "table">,
  caller: Caller,
  { cursor, limit }: ImportQuery,
): Promise<ImportPage> {
  const { companyId } = caller;
  const ids: number[] = [];
  const range = { ...keys.importList(companyId), ...keys.importsBefore(cursor, ownerOfSeen(caller)) };
  for await (const item of table.query({ ...range, newestFirst: true, pageItems: limit + 1 })) {
    ids.push(Entry.parse(item).id);
    if (ids.length > limit) break;
  }
  const shown = ids.slice(0, limit);
  const rows = await table.batchGet(shown.map((id) => keys.import(companyId, id)));
  const found = new Map(rows.map((row) => StoredImport.parse(row)).map((stored) => [stored.id, stored]));
  // Sorted by time, because an import that began later may have a lower id: instances reserve blocks of ids in advance.
  const items = shown
    .flatMap((id) => found.get(id) ?? [])
    .sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt))
    .map(summaryOf);
  return { items, nextCursor: ids.length > limit ? String(shown.at(-1)) : null };
}

/** Cancels an import. The holder of the lease may write rows until the lease expires. After that time, an invocation deletes the rows. */
export async function cancelImport(context: ApiContext, caller: Caller, id: number): Promise<Plan<ImportSummary>> {
  const stored = await findVisibleImport(context, caller, id);
  if (stored.state === "cancelled") return unchanged(summaryOf(stored));
  const { state, upload } = stored;
  if (upload === undefined || state === "completed" || state === "failed") {
    throw new ApiError("conflict", "Only an import by upload that has not ended can be cancelled.");
  }
  const nowMs = context.clock.now();
  const runsUntil = revoked(stored);
  const dueMs = runsUntil === undefined ? nowMs : Math.max(nowMs, Date.parse(runsUntil));
  const changed = { state: "cancelled" as const, updatedAt: iso(nowMs) };
  const update = {
    update: keys.import(caller.companyId, id),
    change: { set: { ...changed, runsUntil, ...due(dueMs) } },
    when: all(equals("state", state), isUntouched(stored)),
  };
  return { writes: [update], answer: summaryOf({ ...stored, ...changed }) };
}

/** Throws `conflict` if the import is not completed or an undo of it has not ended. */
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
  const job = {
    id,
    kind: "import_undo" as const,
    events,
    total: imported,
    chunks: chunksOf(imported),
    undoes: importId,
    // The ids of the created prospects are consecutive, from the first one of a block.
    firstId: prospectBlocks === null ? undefined : prospectBlocks.from * IDS_PER_PARTITION,
  };
  const guard = async (queue: StoredQueue): Promise<void> => {
    const open = (await jobsIn(context.table, companyId, queue)).find(
      ({ kind, undoes }) => kind === "import_undo" && undoes === importId,
    );
    if (open !== undefined) throw excludedBy(caller, open, "already undoes this import and has not ended");
  };
  return startJob({ ...context, jobs }, caller, names, job, { guard });
}
