/** Reads what became of an import. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { Links, UploadHeaders } from "#shared/aws/links.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { unpacked } from "#shared/db/packed.ts";
import { notFound } from "#shared/errors.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import { type Import, type ImportSummary, RowFault, StoredImport, type Upload } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";

/** Throws not_found. */
export async function findImport({ table }: Pick<ApiContext, "table">, companyId: number, id: number) {
  const item = await table.get(keys.import(companyId, id));
  if (item === undefined) throw notFound("import");
  return StoredImport.parse(item);
}

/** While it runs, nothing is imported yet. */
export async function readImport(context: ApiContext, links: Links, caller: Caller, id: number): Promise<Import> {
  return presentImport(context, links, caller, await findImport(context, caller.companyId, id));
}

/** With links that hold from now on. A file is imported in its maker's name and rights: nobody else gets the link to send one. */
export async function presentImport(
  { clock }: Pick<ApiContext, "clock">,
  links: Links,
  { userId }: Pick<Caller, "userId">,
  stored: StoredImport,
): Promise<Import> {
  const { companyId, id, job, state } = stored;
  const report = fileKeys.report(companyId, id);
  const hasReport = job?.hasReport === true;
  const isUploader = state === "awaiting_upload" && stored.createdBy === userId;
  return {
    ...summaryOf(stored),
    errors: unpacked(z.array(RowFault), stored.errors),
    errorReport: hasReport ? await links.download(report, limits.fileLinkSeconds, clock.now()) : null,
    upload: job === undefined || !isUploader ? null : await uploadOf(links, stored, job, clock.now()),
  };
}

/** Null when its time is over. */
async function uploadOf(
  links: Links,
  { companyId, id }: StoredImport,
  { headers, uploadUntil }: NonNullable<StoredImport["job"]>,
  nowMs: number,
): Promise<Upload | null> {
  const seconds = Math.floor((uploadUntil - nowMs) / 1_000);
  if (seconds <= 0) return null;
  const { url } = await links.upload(fileKeys.uploaded(companyId, id), headers, seconds, nowMs);
  return { method: "PUT", url, headers: defined(headers), expiresAt: iso(uploadUntil) };
}

const defined = (headers: UploadHeaders): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));

export function summaryOf(stored: StoredImport): ImportSummary {
  const { id, state, processed, skipped, failure = null, createdAt, updatedAt } = stored;
  const dryRun = stored.dryRun === true;
  const imported = state === "completed" ? stored.imported : 0;
  const written = dryRun ? 0 : writtenBy(stored);
  return { id, state, dryRun, processed, written, imported, skipped, failure, createdAt, updatedAt };
}

/** Rows that are in the table, whether they can be seen yet or not. */
function writtenBy({ state, imported, written = 0, job }: StoredImport): number {
  if (state === "completed") return imported;
  if (state !== "running" || job === undefined || job.progress.step === "check") return 0;
  return Math.max(written, job.progress.done.prospect);
}
