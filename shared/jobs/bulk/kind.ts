/** The interface between the runner of bulk jobs and the kinds of jobs. */
import type { Caller } from "#shared/auth/caller.ts";
import type { JobContext } from "#shared/context.ts";
import type { Condition, Item } from "#shared/db/expression.ts";
import type { BulkKind, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import type { BulkFields, StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

/** One record of a job. For an undo, `before` and `after` are the changed fields around the change to be undone. */
export interface Member {
  readonly id: number;
  readonly before?: BulkFields | undefined;
  readonly after?: BulkFields | undefined;
}

export interface Candidate {
  /** May be deleted. The caller may see the prospects of its assignee. */
  readonly current: StoredProspect;
  /** The row of `current`. Further attributes show whether the notes of the prospect have changed. */
  readonly item: Item;
  readonly member: Member;
  readonly names: Dictionary;
  readonly caller: Caller;
  readonly nowMs: number;
}

/**
 * A write requires that the version of the row is unchanged, and a deletion also the condition `deletedIf`. If a condition fails, the job
 * reads the row again and makes a new decision.
 */
export type Decision = { readonly fields: BulkFields; readonly deletedIf?: Condition } | { readonly skipped: SkipCode };

/** `not_found`: missing, deleted or hidden from the user. `changed_since`: changed since the change that the job undoes. */
export type SkipCode = "not_found" | "changed_since";

export interface Kind {
  /** If false, the job fails. */
  readonly allows: (caller: Caller, job: StoredBulk) => boolean;
  /** Returns a reader of chunks. For the same chunk, it must always return the same records, `job.total` in all chunks together. */
  readonly members: (context: JobContext, job: StoredBulk) => (chunk: number) => Promise<Member[]>;
  /** Throws ApiError if the record cannot be changed as the job wants. */
  readonly decide: (job: StoredBulk, record: Candidate) => Decision;
}

export type Kinds = Readonly<Partial<Record<BulkKind, Kind>>>;
