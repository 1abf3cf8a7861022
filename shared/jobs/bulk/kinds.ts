/** The kinds of bulk jobs: who may begin them, and how each of their records changes. */
import { type Caller, isAdmin, may } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { all, type Condition, type Item, missing } from "#shared/db/expression.ts";
import { ApiError } from "#shared/errors.ts";
import type { BulkKind, Member, StoredAction, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { commonFields, equalling, isEmpty } from "#shared/prospects/bulk-write.ts";
import { requireStatus, requireUser } from "#shared/prospects/references.ts";
import { type BulkFields, notesAttributes, type StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

interface Candidate {
  /** The prospect. It may be deleted. The caller may see the prospects of its assignee. */
  readonly current: StoredProspect;
  /** The row of `current`. It also has `notesAttributes`, which show whether the notes of the prospect have changed. */
  readonly item: Item;
  readonly member: Member;
  readonly names: Dictionary;
  readonly caller: Caller;
  readonly nowMs: number;
}

/** The fields to write, or why the record is skipped. A write needs an unchanged row, and a deletion one that also meets `deletedIf`. */
type Decision = { readonly fields: BulkFields; readonly deletedIf?: Condition } | { readonly skipped: SkipCode };

/** `not_found`: missing, deleted or hidden from the user. `changed_since`: changed since the change that the job undoes. */
type SkipCode = "not_found" | "changed_since";

/** Throws ApiError if the record cannot be changed as the job wants. */
type Decide = (job: StoredBulk, record: Candidate) => Decision;

/** Returns whether the caller has the right for this job. Only an admin may delete prospects, and restore deleted ones. */
export const mayRun = (caller: Caller, { action }: StoredBulk): boolean =>
  action?.delete === true ? isAdmin(caller) : may(caller, "canManageProspects");

/** A run over a territory skips a prospect that somebody has reassigned since the job was created. */
const change: Decide = ({ action = {} }, candidate) => {
  const { current, nowMs } = candidate;
  if (current.deletedAt !== undefined) return { skipped: "not_found" };
  if (!isFrom(action, current.assignedToUserId)) return { skipped: "changed_since" };
  if (action.delete === true) return { fields: { deletedAt: iso(nowMs) } };
  return {
    fields: { ...statusOf(action, candidate), ...assigneeOf(action, candidate), ...tagsOf(action, candidate) },
  };
};

function isFrom({ from }: StoredAction, assignee: number | null): boolean {
  if (from === undefined) return true;
  if (from === "anyone") return assignee !== null;
  return from === "nobody" ? assignee === null : assignee === from;
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

/** Restores what another job has changed, unless somebody has changed it since. */
const restore: Decide = (_job, { current, member: { before = {}, after = {} } }) => {
  // A prospect that was deleted after the undone job had changed it stays deleted.
  if (current.deletedAt !== undefined && after.deletedAt === undefined) return { skipped: "not_found" };
  const { assignedByUserId: _assigner, ...compared } = after;
  const left = equalling(current, compared);
  if (isEmpty(left)) return { skipped: "changed_since" };
  const { assignedByUserId } = before;
  const restoresAssigner = left.assignedToUserId !== undefined && assignedByUserId !== undefined;
  return { fields: { ...commonFields(before, left), ...(restoresAssigner && { assignedByUserId }) } };
};

/** Deletes a prospect of an import, unless somebody has changed it since. */
const deleteImported: Decide = ({ undoes }, { current, item, nowMs }) => {
  if (current.deletedAt !== undefined || current.importId !== String(undoes)) return { skipped: "not_found" };
  // A change of the prospect or its appointments raises the version. A change of a note sets `notesAttributes` instead.
  const isUnchanged = current.version === 1 && notesAttributes.every((name) => item[name] === undefined);
  if (!isUnchanged) return { skipped: "changed_since" };
  return { fields: { deletedAt: iso(nowMs) }, deletedIf: all(...notesAttributes.map(missing)) };
};

export const decisions: Readonly<Record<BulkKind, Decide>> = {
  prospect_bulk: change,
  territory_run: change,
  undo: restore,
  import_undo: deleteImported,
};
