/** A plain model of bulk jobs and their undo. It says what they must make of each prospect. */
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
  /** The outcome, or the code if the job skips the prospect or cannot change it. */
  readonly outcome: string;
}

export interface PlainAction {
  readonly status: number | null;
  readonly assignee: number | null;
  readonly addedTag: number;
}

const TAGS_MAX = 50;

/** Says what a job must make of a prospect. */
export function expectedChange(current: Plain, { status, assignee, addedTag }: PlainAction): Expected {
  if (current.isDeleted) return { row: current, outcome: "not_found" };
  const tags = current.tags.includes(addedTag) ? current.tags : [...current.tags, addedTag];
  if (tags.length > TAGS_MAX) return { row: current, outcome: "conflict" };
  const row = { status, assignee, tags, isDeleted: false };
  const isChanged = fields.some((field) => !isSame(current, row, field));
  return { row, outcome: isChanged ? "changed" : "unchanged" };
}

/** Says what an undo must make of a prospect that was `before` and `after` the job and is `current` now. */
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
