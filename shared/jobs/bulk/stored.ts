/** The stored rows of bulk jobs, and the files with their records and results. */
import * as z from "zod/mini";
import { BulkEvents, BulkFields } from "#shared/prospects/stored.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const BulkState = z.enum(["queued", "running", "paused", "completed", "cancelled", "failed"]);
export type BulkState = z.infer<typeof BulkState>;

/** The kinds of bulk jobs. A kind determines the records of a job and how each of them changes. */
export const BulkKind = z.enum(["prospect_bulk", "territory_run", "undo", "import_undo"]);
export type BulkKind = z.infer<typeof BulkKind>;

/** The change that a job of the kind `prospect_bulk` or `territory_run` makes. */
export const StoredAction = z.object({
  statusId: z.optional(z.nullable(Id)),
  assignedToUserId: z.optional(z.nullable(Id)),
  addTagIds: z.optional(z.array(Id)),
  removeTagIds: z.optional(z.array(Id)),
  delete: z.optional(z.literal(true)),
  /**
   * Whose prospects a job of the kind `territory_run` changes: unassigned ones (`nobody`), those of any user (`anyone`), or those of the
   * user with this id.
   */
  from: z.optional(z.union([z.enum(["nobody", "anyone"]), Id])),
});
export type StoredAction = z.infer<typeof StoredAction>;

const count = z.int();

/** The counts of handled records. These four counts and the number of unprocessed records always sum to `total`. */
export const handledCounts = { changed: count, unchanged: count, skipped: count, failed: count };

export const StoredBulk = z.object({
  type: z.literal("bulkJob"),
  id: Id,
  companyId: Id,
  kind: BulkKind,
  state: BulkState,
  /** What a user has asked a running job to do. The job does it after its current chunk (up to 512 records). */
  wanted: z.optional(z.enum(["paused", "cancelled"])),
  events: BulkEvents,
  /** The change of a job of the kind `prospect_bulk` or `territory_run`. */
  action: z.optional(StoredAction),
  /** The territory of a job of the kind `territory_run`. */
  territoryId: z.optional(Id),
  /** The job or import that this job undoes. */
  undoes: z.optional(Id),
  /** The newest job that undoes this one. */
  undoneBy: z.optional(Id),
  /** The first id of the records, if their ids are consecutive. Otherwise the ids are in the bucket. */
  firstId: z.optional(Id),
  total: count,
  ...handledCounts,
  /** Number of chunks (up to 512 records each) into which the records of the job are divided. */
  chunks: count,
  /** Number of chunks whose results are stored. Chunks are numbered from 0, so this is also the number of the next chunk. */
  done: count,
  /**
   * The counts of the records of the current chunk that were handled when the job last saved its progress. `chunk` is the number of this
   * chunk. The job's other counts contain only finished chunks.
   */
  inChunk: z.optional(z.object({ chunk: count, ...handledCounts })),
  /**
   * True from the beginning of an invocation until it stores that it has ended. If an invocation finds true, the previous invocation was
   * interrupted, and may have written some records of the next chunk without storing their results.
   */
  isOpen: z.boolean(),
  /** True if the company's queue allows the job to run now. */
  isAdmitted: z.boolean(),
  failure: z.optional(z.string()),
  createdBy: Id,
  /**
   * The version of the row of the user who began the job, when the job last read this row for the user's rights. All writes of the job with
   * earlier rights have ended.
   */
  authorVersion: z.optional(count),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  endedAt: z.optional(Timestamp),
  version: count,
  /** The end of the job's lease, in milliseconds since 1970. Until then, no other invocation works on the job. */
  runsUntil: count,
  /** Number of invocations since the last stored chunk. If it becomes too high, the job fails. */
  runs: count,
  /** The time at which the table deletes the row, in seconds since 1970. */
  expiresAt: z.optional(count),
});
export type StoredBulk = z.infer<typeof StoredBulk>;

type Counts = Record<Outcome, number>;

export const plus = (a: Counts, b: Counts): Counts => ({
  changed: a.changed + b.changed,
  unchanged: a.unchanged + b.unchanged,
  skipped: a.skipped + b.skipped,
  failed: a.failed + b.failed,
});

export const sumOf = ({ changed, unchanged, skipped, failed }: Counts): number =>
  changed + unchanged + skipped + failed;

const none: Counts = { changed: 0, unchanged: 0, skipped: 0, failed: 0 };

/** Returns the counts of the handled records of the current chunk, as the job last saved them. They are 0 after the end of the job. */
export const countsInChunk = (job: Pick<StoredBulk, "state" | "done" | "inChunk">): Counts =>
  job.inChunk?.chunk === job.done && !hasEnded(job) ? job.inChunk : none;

export const hasEnded = ({ state }: Pick<StoredBulk, "state">): boolean =>
  state === "completed" || state === "cancelled" || state === "failed";

/** The jobs of a company that have not ended. At most one of them runs. */
export const StoredQueue = z.object({
  type: z.literal("bulkQueue"),
  running: z.nullable(Id),
  /** The jobs that wait, in the order in which they will run. */
  waiting: z.array(Id),
  paused: z.array(Id),
  version: count,
});
export type StoredQueue = z.infer<typeof StoredQueue>;

export const Outcome = z.enum(["changed", "unchanged", "skipped", "failed"]);
export type Outcome = z.infer<typeof Outcome>;

/**
 * The outcomes that results contain. `unprocessed` means that the job has not handled the record. The job's counts do not contain such
 * records.
 */
export const ResultOutcome = z.enum([...Outcome.options, "unprocessed"]);

/** The result of one record, as the bucket stores it. */
export const StoredResult = z.object({
  id: Id,
  outcome: ResultOutcome,
  code: z.optional(z.string()),
  detail: z.optional(z.string()),
  /** The written fields before and after the change. An undo of the job needs them. */
  before: z.optional(BulkFields),
  after: z.optional(BulkFields),
});
export type StoredResult = z.infer<typeof StoredResult>;
