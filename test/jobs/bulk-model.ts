/**
 * A simple model of bulk jobs and their undo. For each prospect, it computes the expected state and the outcome that the job must report.
 */
import type { StoredProspect } from "#shared/prospects/stored.ts";

/** A prospect in the model. It is a plain object, and its tags are in the order in which they were added. */
export interface Plain {
  readonly status: number | null;
  readonly assignee: number | null;
  readonly tags: readonly number[];
  readonly isDeleted: boolean;
}

export const plain = ({ statusId, assignedToUserId, tagIds, deletedAt }: StoredProspect): Plain => ({
  status: statusId,
  assignee: assignedToUserId,
  tags: tagIds,
  isDeleted: deletedAt !== undefined,
});

const fields = ["status", "assignee", "tags", "isDeleted"] as const;
const isSame = (a: Plain, b: Plain, field: (typeof fields)[number]): boolean =>
  JSON.stringify(a[field]) === JSON.stringify(b[field]);

export interface Expected {
  readonly row: Plain;
  /** What the job must report for the prospect: an outcome, or an error code if it skips the prospect or cannot change it. */
  readonly outcome: string;
}

export interface PlainAction {
  readonly status: number | null;
  readonly assignee: number | null;
  readonly addedTag: number;
}

const TAGS_MAX = 50;

/** Returns the state that a job must give to a prospect, and the outcome that it must report. */
export function expectedChange(current: Plain, { status, assignee, addedTag }: PlainAction): Expected {
  if (current.isDeleted) return { row: current, outcome: "not_found" };
  const tags = current.tags.includes(addedTag) ? current.tags : [...current.tags, addedTag];
  if (tags.length > TAGS_MAX) return { row: current, outcome: "conflict" };
  const row = { status, assignee, tags, isDeleted: false };
  const isChanged = fields.some((field) => !isSame(current, row, field));
  return { row, outcome: isChanged ? "changed" : "unchanged" };
}

/**
 * Returns the state that an undo must give to a prospect, and the outcome that it must report. `before` and `after` are the states directly
 * before and after the job. `current` is the state when the undo begins.
 */
export function expectedUndo(before: Plain, after: Plain, current: Plain): Expected {
  if (current.isDeleted && !after.isDeleted) return { row: current, outcome: "not_found" };
  const restored = fields.filter((field) => !isSame(before, after, field) && isSame(after, current, field));
  if (restored.length === 0) return { row: current, outcome: "changed_since" };
  const value = <F extends (typeof fields)[number]>(field: F): Plain[F] =>
    (restored.includes(field) ? before : current)[field];
  const row = {
    status: value("status"),
    assignee: value("assignee"),
    tags: value("tags"),
    isDeleted: value("isDeleted"),
  };
  return { row, outcome: "changed" };
}
