/** Begins an export into a file: what it holds is decided by the first run of its work. */
import * as z from "zod/mini";
import { type Caller, isAdmin, visibleAssignee } from "#shared/auth/caller.ts";
import type { JobQueue } from "#shared/aws/job-queue.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { validate } from "#shared/http/validate.ts";
import { presentExport } from "#shared/jobs/export/read.ts";
import type { Export, NewExport } from "#shared/jobs/export/schema.ts";
import type { StoredExport } from "#shared/jobs/export/stored.ts";
import { errorFields, log } from "#shared/log.ts";
import { ProspectFilter, RepresentativeFilter } from "#shared/prospects/filter.ts";

/** What the request says, in its own words. */
const Texts = z.record(z.string(), z.string());

export async function beginExport(
  context: ApiContext,
  queue: JobQueue,
  caller: Caller,
  filter: NewExport,
): Promise<Export> {
  validate("body", ProspectFilter, filter);
  if (isAdmin(caller)) validate("body", RepresentativeFilter, filter);
  const stored = newExport(context, caller, await context.ids.next(), filter);
  const { companyId, id } = stored;
  const due = { dueShard: keys.jobShard, dueAt: stored.createdAt };
  const answer = presentExport(stored, null);
  await context.commit([{ put: { ...keys.export(companyId, id), ...stored, ...due }, when: absent }], answer);
  // A message that is lost is sent by the sweeper, within a minute or two.
  await queue.send({ kind: "export", companyId, id }).catch((error: unknown) => {
    log.warn("export not queued", { id, ...errorFields(error) });
  });
  return answer;
}

function newExport({ clock }: ApiContext, caller: Caller, id: number, filter: NewExport): StoredExport {
  const now = iso(clock.now());
  return {
    type: "export",
    id,
    companyId: caller.companyId,
    state: "running",
    filter: Texts.parse(Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))),
    createdBy: caller.userId,
    assignee: visibleAssignee(caller) ?? null,
    total: null,
    processed: 0,
    parts: null,
    createdAt: now,
    updatedAt: now,
    version: 1,
    runsUntil: 0,
    runs: 0,
  };
}
