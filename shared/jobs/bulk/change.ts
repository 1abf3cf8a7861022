/** The kind of bulk jobs that sets the status, the assignee or the tags of prospects, or deletes them. */
import { isAdmin, may } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { ApiError } from "#shared/errors.ts";
import { memberReader } from "#shared/jobs/bulk/files.ts";
import type { Candidate, Decision, Kind } from "#shared/jobs/bulk/kind.ts";
import type { StoredAction, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { requireStatus, requireUser } from "#shared/prospects/references.ts";
import type { BulkFields } from "#shared/prospects/stored.ts";

export const changeKind: Kind = {
  allows: (caller, { action }) => (action?.delete === true ? isAdmin(caller) : may(caller, "canManageProspects")),
  members: ({ objects }, job) => {
    const read = memberReader(objects, job);
    return async (chunk) => (await read(chunk)).map((id) => ({ id }));
  },
  decide,
};

function decide({ action = {} }: StoredBulk, candidate: Candidate): Decision {
  const { current, nowMs } = candidate;
  if (current.deletedAt !== undefined) return { skipped: "not_found" };
  if (action.delete === true) return { fields: { deletedAt: iso(nowMs) } };
  return { fields: { ...statusOf(action, candidate), ...assigneeOf(action, candidate), ...tagsOf(action, candidate) } };
}

function statusOf({ statusId }: StoredAction, { current, names }: Candidate): BulkFields {
  if (statusId === undefined || statusId === current.statusId) return {};
  if (statusId !== null) requireStatus(names, statusId);
  return { statusId };
}

function assigneeOf({ assignedToUserId }: StoredAction, { current, names, caller }: Candidate): BulkFields {
  if (assignedToUserId === undefined || assignedToUserId === current.assignedToUserId) return {};
  if (assignedToUserId !== null) requireUser(names, "assignedToUserId", assignedToUserId);
  return { assignedToUserId, assignedByUserId: caller.userId };
}

function tagsOf({ addTagIds = [], removeTagIds = [] }: StoredAction, { current, names }: Candidate): BulkFields {
  const kept = current.tagIds.filter((id) => !removeTagIds.includes(id));
  const added = addTagIds.filter((id) => !kept.includes(id));
  if (kept.length === current.tagIds.length && added.length === 0) return {};
  if (added.some((id) => !names.tags.has(id))) throw new ApiError("conflict", "A tag was deleted meanwhile.");
  const tagIds = [...kept, ...added];
  if (tagIds.filter((id) => names.tags.has(id)).length > limits.tagsPerProspect) {
    throw new ApiError("conflict", `A prospect may have at most ${limits.tagsPerProspect} tags.`);
  }
  return { tagIds };
}
