/** The kinds of bulk jobs: which records a job has, and how each of them changes. */
import { type Caller, isAdmin, may } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { JobContext } from "#shared/context.ts";
import { all, type Condition, type Item, missing } from "#shared/db/expression.ts";
import { ApiError } from "#shared/errors.ts";
import { consecutiveIds, memberReader, readResults } from "#shared/jobs/bulk/files.ts";
import type { BulkKind, StoredAction, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { commonFields, equalling, isEmpty } from "#shared/prospects/bulk-write.ts";
import { requireStatus, requireUser } from "#shared/prospects/references.ts";
import { type BulkFields, notesAttributes, type StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

/** One record of a job. For an undo, `before` and `after` have the changed fields before and after the change that is undone. */
export interface Member {
  readonly id: number;
  readonly before?: BulkFields | undefined;
  readonly after?: BulkFields | undefined;
}

interface Candidate {
  /** The prospect, which may be deleted. The caller may see the prospects of its assignee. */
  readonly current: StoredProspect;
  /** The row of `current`. It also has `notesAttributes`, which show whether the notes of the prospect have changed. */
  readonly item: Item;
  readonly member: Member;
  readonly names: Dictionary;
  readonly caller: Caller;
  readonly nowMs: number;
}

/**
 * What the job does with a record: it writes `fields`, or skips the record. The write requires that the version of the row is unchanged,
 * and a deletion also requires `deletedIf`. If a condition fails, the job reads the row again and makes a new decision.
 */
type Decision = { readonly fields: BulkFields; readonly deletedIf?: Condition } | { readonly skipped: SkipCode };

/** `not_found`: missing, deleted or hidden from the user. `changed_since`: changed since the change that the job undoes. */
type SkipCode = "not_found" | "changed_since";

export interface Kind {
  /** Returns whether the caller has the right for this job. If not, the job fails. */
  readonly allows: (caller: Caller, job: StoredBulk) => boolean;
  /** Returns a reader of chunks. For the same chunk, it must always return the same records, `job.total` in all chunks together. */
  readonly members: (context: JobContext, job: StoredBulk) => (chunk: number) => Promise<Member[]>;
  /** Throws ApiError if the record cannot be changed as the job wants. */
  readonly decide: (job: StoredBulk, record: Candidate) => Decision;
}

/** Only an admin may delete prospects, and restore deleted ones. */
const allows: Kind["allows"] = (caller, { action }) =>
  action?.delete === true ? isAdmin(caller) : may(caller, "canManageProspects");

/** Sets the status, the assignee or the tags of prospects, or deletes them. */
const changeKind: Kind = {
  allows,
  members: ({ objects }, job) => {
    const read = memberReader(objects, job);
    return async (chunk) => (await read(chunk)).map((id) => ({ id }));
  },
  decide: ({ action = {} }, candidate) => {
    const { current, nowMs } = candidate;
    if (current.deletedAt !== undefined) return { skipped: "not_found" };
    if (action.delete === true) return { fields: { deletedAt: iso(nowMs) } };
    return {
      fields: { ...statusOf(action, candidate), ...assigneeOf(action, candidate), ...tagsOf(action, candidate) },
    };
  },
};

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

/**
 * Assigns the prospects of a territory. Skips a prospect whose assignee does not fit the action (`from`), because somebody has reassigned it
 * after the job was created.
 */
const territoryRunKind: Kind = {
  ...changeKind,
  decide: (job, candidate) => {
    const { deletedAt, assignedToUserId } = candidate.current;
    if (deletedAt === undefined && !isFrom(job.action?.from, assignedToUserId)) return { skipped: "changed_since" };
    return changeKind.decide(job, candidate);
  },
};

function isFrom(from: StoredAction["from"], assignee: number | null): boolean {
  if (from === "anyone") return assignee !== null;
  return from === "nobody" ? assignee === null : assignee === from;
}

/** Restores what another job has changed, unless somebody has changed it since. */
const undoKind: Kind = {
  allows,
  members:
    ({ objects }, { companyId, undoes = 0 }) =>
    async (chunk) =>
      (await readResults(objects, { companyId, id: undoes }, chunk)).filter(({ outcome }) => outcome === "changed"),
  decide: (_job, { current, member: { before = {}, after = {} } }) => {
    // A prospect that was deleted after the job's change stays deleted.
    if (current.deletedAt !== undefined && after.deletedAt === undefined) return { skipped: "not_found" };
    const { assignedByUserId: _assigner, ...compared } = after;
    const left = equalling(current, compared);
    if (isEmpty(left)) return { skipped: "changed_since" };
    const { assignedByUserId } = before;
    const restoresAssigner = left.assignedToUserId !== undefined && assignedByUserId !== undefined;
    return { fields: { ...commonFields(before, left), ...(restoresAssigner && { assignedByUserId }) } };
  },
};

/** Deletes each prospect of an import, unless somebody has changed it since. */
const importUndoKind: Kind = {
  allows,
  members:
    (_, { firstId = 0, total }) =>
    async (chunk) =>
      consecutiveIds(firstId, total, chunk).map((id) => ({ id })),
  decide: ({ undoes }, { current, item, nowMs }) => {
    if (current.deletedAt !== undefined || current.importId !== String(undoes)) return { skipped: "not_found" };
    // A change of the prospect or its appointments raises the version. A change of a note sets `notesAttributes` instead.
    const isUnchanged = current.version === 1 && notesAttributes.every((name) => item[name] === undefined);
    if (!isUnchanged) return { skipped: "changed_since" };
    return { fields: { deletedAt: iso(nowMs) }, deletedIf: all(...notesAttributes.map(missing)) };
  },
};

export type Kinds = Readonly<Record<BulkKind, Kind>>;

export const allKinds: Kinds = {
  prospect_bulk: changeKind,
  territory_run: territoryRunKind,
  undo: undoKind,
  import_undo: importUndoKind,
};
