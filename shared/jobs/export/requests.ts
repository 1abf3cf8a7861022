/** The API requests for exports into a file: one begins an export, and one reads its progress with the link to the file. */
import * as z from "zod/mini";
import { type Caller, isAdmin, visibleAssignee } from "#shared/auth/caller.ts";
import type { Link, Links } from "#shared/aws/links.ts";
import type { JobQueue } from "#shared/aws/sqs.ts";
import { DAY_MS, iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { notFound } from "#shared/errors.ts";
import { validate } from "#shared/http/validate.ts";
import type { Export, NewExport } from "#shared/jobs/export/schema.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { announce, due, newJobRow } from "#shared/jobs/job.ts";
import { exportKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { ProspectFilter, RepresentativeFilter } from "#shared/prospects/filter.ts";

const Texts = z.record(z.string(), z.string());

export async function beginExport(
  context: ApiContext,
  queue: JobQueue,
  caller: Caller,
  { columns, bom, ...filter }: NewExport,
): Promise<Plan<Export>> {
  validate("body", ProspectFilter, filter);
  if (isAdmin(caller)) validate("body", RepresentativeFilter, filter);
  const { companyId } = caller;
  const nowMs = context.clock.now();
  const id = await context.ids.next();
  const stored: StoredExport = {
    type: "export",
    ...newJobRow(caller, id, nowMs),
    state: "running",
    filter: Texts.parse(Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))),
    columns,
    bom,
    assignee: visibleAssignee(caller) ?? null,
    total: null,
    processed: 0,
    read: 0,
    parts: null,
  };
  return {
    writes: [{ put: { ...keys.export(companyId, id), ...stored, ...due(nowMs) }, when: absent }],
    answer: presentExport(stored, null),
    after: () => announce(queue, { kind: "export", companyId, id }),
  };
}

export async function readExport(context: ApiContext, links: Links, caller: Caller, id: number): Promise<Export> {
  const item = await context.table.get(keys.export(caller.companyId, id));
  const stored = item === undefined ? undefined : StoredExport.parse(item);
  if (stored === undefined || !maySee(caller, stored)) throw notFound("export");
  const now = context.clock.now();
  const hasFile = stored.state === "completed" && now < keptUntil(stored);
  const file = hasFile ? await links.download(exportKeys.file(stored), limits.fileLinkSeconds, now) : null;
  return presentExport(stored, file);
}

function maySee(caller: Caller, { createdBy, assignee }: StoredExport): boolean {
  const own = visibleAssignee(caller);
  return (isAdmin(caller) || createdBy === caller.userId) && (own === undefined || own === assignee);
}

/** The file is kept until this time, in milliseconds since 1970. Then the API shows no link, and a lifecycle rule deletes the file. */
const keptUntil = ({ updatedAt }: StoredExport): number => Date.parse(updatedAt) + limits.exportKeptDays * DAY_MS;

export function presentExport(stored: StoredExport, file: Link | null): Export {
  const { id, state, total, processed, read, parts, failure = null, createdAt, updatedAt } = stored;
  const isDone = state === "completed";
  return {
    id,
    state,
    total,
    processed: Math.max(processed, read),
    bytes: isDone && parts !== null ? parts.fileBytes : null,
    file,
    keptUntil: isDone ? iso(keptUntil(stored)) : null,
    failure,
    createdAt,
    updatedAt,
  };
}
