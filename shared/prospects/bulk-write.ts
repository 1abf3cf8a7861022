/**
 * Writes the fields of one prospect for a bulk job. The row gets the mark `bulk`, so that the job does not change the prospect again after
 * a crash.
 */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Condition, Write } from "#shared/db/expression.ts";
import { type AgendaEntry, agendaRemoval, agendaWrites } from "#shared/prospects/agenda.ts";
import { replaceProspect } from "#shared/prospects/rows.ts";
import { type BulkFields, type BulkMark, StoredAppointment, type StoredProspect } from "#shared/prospects/stored.ts";
import { nextVersion } from "#shared/prospects/write.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

/** The `source` of status changes that a bulk job makes. */
const BULK_SOURCE = "bulk";

function sameFields(prospect: StoredProspect, like: BulkFields): BulkFields {
  const { statusId, assignedToUserId, assignedByUserId, tagIds, deletedAt = null } = prospect;
  return {
    ...(like.statusId !== undefined && { statusId }),
    ...(like.assignedToUserId !== undefined && { assignedToUserId }),
    ...(like.assignedByUserId !== undefined && { assignedByUserId }),
    ...(like.tagIds !== undefined && { tagIds }),
    ...(like.deletedAt !== undefined && { deletedAt }),
  };
}

export const differing = (prospect: StoredProspect, wanted: BulkFields): BulkFields =>
  chosen(wanted, sameFields(prospect, wanted), (a, b) => a !== b);

export const equalling = (prospect: StoredProspect, wanted: BulkFields): BulkFields =>
  chosen(wanted, sameFields(prospect, wanted), (a, b) => a === b);

function chosen(wanted: BulkFields, actual: BulkFields, test: (a: string, b: string) => boolean): BulkFields {
  const passes = (field: keyof BulkFields): boolean =>
    wanted[field] !== undefined && test(JSON.stringify(wanted[field]), JSON.stringify(actual[field]));
  const { statusId, assignedToUserId, assignedByUserId, tagIds, deletedAt } = wanted;
  return {
    ...(passes("statusId") && { statusId }),
    ...(passes("assignedToUserId") && { assignedToUserId }),
    ...(passes("assignedByUserId") && { assignedByUserId }),
    ...(passes("tagIds") && { tagIds }),
    ...(passes("deletedAt") && { deletedAt }),
  };
}

export function commonFields(from: BulkFields, like: BulkFields): BulkFields {
  const { statusId, assignedToUserId, assignedByUserId, tagIds, deletedAt } = from;
  return {
    ...(like.statusId !== undefined && { statusId }),
    ...(like.assignedToUserId !== undefined && { assignedToUserId }),
    ...(like.assignedByUserId !== undefined && { assignedByUserId }),
    ...(like.tagIds !== undefined && { tagIds }),
    ...(like.deletedAt !== undefined && { deletedAt }),
  };
}

export const isEmpty = (fields: BulkFields): boolean => Object.keys(fields).length === 0;

/**
 * Writes the fields `after` and the mark of the job in one transaction. All fields must differ from the prospect's. Throws
 * `ConditionFailed` if the row has changed since `current` was read, or does not meet `deletedIf` for a deletion. Returns the mark.
 */
export async function writeByJob(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  after: BulkFields,
  job: Pick<BulkMark, "jobId" | "events">,
  dictionary: Dictionary,
  deletedIf?: Condition,
): Promise<BulkMark> {
  const version = current.version + 1;
  const bulk: BulkMark = { ...job, version, before: sameFields(current, after), after };
  const { deletedAt: deletedBefore = null, ...others } = current;
  const { deletedAt = deletedBefore, tagIds = current.tagIds } = after;
  const { statusId = current.statusId, assignedToUserId = current.assignedToUserId } = after;
  const { assignedByUserId = current.assignedByUserId } = after;
  const next: StoredProspect = {
    ...others,
    statusId,
    assignedToUserId,
    assignedByUserId,
    tagIds,
    ...(deletedAt !== null && { deletedAt }),
    updatedAt: iso(context.clock.now()),
    updatedBy: caller.userId,
    version,
    bulk,
  };
  await context.table.transact(await writesOf(context, current, next, dictionary, deletedIf));
  return bulk;
}

async function writesOf(
  context: ApiContext,
  current: StoredProspect,
  next: StoredProspect,
  dictionary: Dictionary,
  deletedIf?: Condition,
): Promise<Write[]> {
  const [wasDeleted, isDeleted] = [current.deletedAt !== undefined, next.deletedAt !== undefined];
  if (isDeleted && !wasDeleted) return [...replaceProspect(current, next, deletedIf), ...agendaRemoval(current)];
  if (!isDeleted && wasDeleted) {
    const entries = await appointmentTimes(context, current);
    return [...replaceProspect(current, next), ...(entries.length === 0 ? [] : agendaWrites(next, next, entries))];
  }
  return (await nextVersion(context, current, next, { dictionary, source: BULK_SOURCE })).writes;
}

/** Reads the appointments of a deleted prospect, whose agenda was deleted with it. No appointment can have changed since. */
async function appointmentTimes({ table }: ApiContext, { companyId, id }: StoredProspect): Promise<AgendaEntry[]> {
  const entries: AgendaEntry[] = [];
  for await (const item of table.query(attachedKeys.appointments(companyId, id))) {
    const { id: appointmentId, startAt, status, deletedAt } = StoredAppointment.parse(item);
    if (deletedAt !== undefined) continue;
    entries.push({ id: appointmentId, startMs: Date.parse(startAt), isScheduled: status === "scheduled" });
  }
  return entries;
}
