/** Reads how far an export is, and hands out its file to whom it may be shown. */
import { type Caller, isAdmin, visibleAssignee } from "#shared/auth/caller.ts";
import type { Link, Links } from "#shared/aws/links.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { notFound } from "#shared/errors.ts";
import { exportKeys } from "#shared/jobs/export/s3-keys.ts";
import type { Export } from "#shared/jobs/export/schema.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { limits } from "#shared/limits.ts";

const DAY_MS = 86_400_000;

/** Throws not_found where there is none, or it holds more than the caller may see. */
export async function readExport(context: ApiContext, links: Links, caller: Caller, id: number): Promise<Export> {
  const item = await context.table.get(keys.export(caller.companyId, id));
  const stored = item === undefined ? undefined : StoredExport.parse(item);
  if (stored === undefined || !mayHave(caller, stored)) throw notFound("export");
  const now = context.clock.now();
  const isThere = stored.state === "completed" && now < keptUntil(stored);
  const key = exportKeys.file(stored.companyId, id);
  return presentExport(stored, isThere ? await links.download(key, limits.fileLinkSeconds, now) : null);
}

function mayHave(caller: Caller, { createdBy, assignee }: StoredExport): boolean {
  const isTheirs = isAdmin(caller) || createdBy === caller.userId;
  const seen = visibleAssignee(caller);
  return isTheirs && (seen === undefined || seen === assignee);
}

/** The bucket removes it some time later. */
const keptUntil = ({ updatedAt }: StoredExport): number => Date.parse(updatedAt) + limits.exportKeptDays * DAY_MS;

export function presentExport(stored: StoredExport, file: Link | null): Export {
  const { id, state, total, processed, read = 0, parts, failure = null, createdAt, updatedAt } = stored;
  const isDone = state === "completed";
  return {
    id,
    state,
    total,
    processed: Math.max(processed, read),
    bytes: isDone ? (parts?.fileBytes ?? 0) : null,
    file,
    keptUntil: isDone ? iso(keptUntil(stored)) : null,
    failure,
    createdAt,
    updatedAt,
  };
}
