/**
 * The interface between the runner of bulk jobs and the kinds of jobs. A kind determines the records of a job and how each of them changes.
 */
import type { Caller } from "#shared/auth/caller.ts";
import type { JobContext } from "#shared/context.ts";
import type { Condition, Item } from "#shared/db/expression.ts";
import type { BulkKind, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import type { BulkFields, StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

/**
 * One record of a job. If the job is an undo, the record also has the changed fields as they were before and after the change to be undone.
 */
export interface Member {
  readonly id: number;
  readonly before?: BulkFields | undefined;
  readonly after?: BulkFields | undefined;
}

export interface Candidate {
  /** The prospect, parsed from its current row. The prospect may be deleted. The caller may see the prospects of its assignee. */
  readonly current: StoredProspect;
  /** The row from which `current` was parsed. It has further attributes, which show whether the notes of the prospect have changed. */
  readonly item: Item;
  readonly member: Member;
  readonly names: Dictionary;
  readonly caller: Caller;
  readonly nowMs: number;
}

/**
 * What a job does with a record: it skips the record, or it writes those of `fields` that differ from the record's values. A write always
 * requires that the version of the row is unchanged. A deletion can require a further condition, `deletedIf`. If a condition fails, the job
 * reads the row again and makes a new decision.
 */
export type Decision = { readonly fields: BulkFields; readonly deletedIf?: Condition } | { readonly skipped: SkipCode };

/**
 * The reason why a job skips a record. `not_found` means that the record is missing, deleted or hidden from the user. `changed_since` means
 * that somebody has changed the record since the change that the job undoes.
 */
export type SkipCode = "not_found" | "changed_since";

export interface Kind {
  /** Returns true if the user may still do what the job does. Otherwise the job fails. */
  readonly allows: (caller: Caller, job: StoredBulk) => boolean;
  /**
   * Returns a function that reads the records of a chunk (up to 512 records). For the same chunk, it must always return the same records.
   * All chunks together must have `job.total` records.
   */
  readonly members: (context: JobContext, job: StoredBulk) => (chunk: number) => Promise<Member[]>;
  /** Decides what the job does with a record. Throws ApiError if the record cannot be changed as the job wants. */
  readonly decide: (job: StoredBulk, record: Candidate) => Decision;
}

export type Kinds = Readonly<Partial<Record<BulkKind, Kind>>>;
