/** The stored rows of bulk jobs, and the files with their records and results. */
import * as z from "zod/mini";
import { jobFields } from "#shared/jobs/job.ts";
import { BulkEvents, BulkFields } from "#shared/prospects/stored.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const BulkState = z.enum(["queued", "running", "paused", "completed", "cancelled", "failed"]);
export type BulkState = z.infer<typeof BulkState>;

export const BulkKind = z.enum(["prospect_bulk", "territory_run", "undo", "import_undo"]);
export type BulkKind = z.infer<typeof BulkKind>;

/** The change that a job of the kind `prospect_bulk` or `territory_run` makes. */
export const StoredAction = z.object({
  statusId: z.optional(z.nullable(Id)),
  assignedToUserId: z.optional(z.nullable(Id)),
  addTagIds: z.optional(z.array(Id)),
  removeTagIds: z.optional(z.array(Id)),
  delete: z.optional(z.literal(true)),
  /** Whose prospects a `territory_run` changes: unassigned ones, those of any user, or those of one user. */
  from: z.optional(z.union([z.enum(["nobody", "anyone"]), Id])),
});
export type StoredAction = z.infer<typeof StoredAction>;

const count = z.int();

/** The counts of handled records. These four counts and the number of unprocessed records always sum to `total`. */
export const handledCounts = { changed: count, unchanged: count, skipped: count, failed: count };

export const StoredBulk = z.object({
  ...jobFields,
  type: z.literal("bulkJob"),
  kind: BulkKind,
  state: BulkState,
  /** What a user has asked a running job to do after its current chunk. */
  wanted: z.optional(z.enum(["paused", "cancelled"])),
  events: BulkEvents,
  action: z.optional(StoredAction),
  territoryId: z.optional(Id),
  undoes: z.optional(Id),
  undoneBy: z.optional(Id),
  /** The id of the first record. Absent if the ids are not consecutive: files in the bucket then have them. */
  firstId: z.optional(Id),
  total: count,
  ...handledCounts,
  chunks: count,
  /** Number of finished chunks. It is also the number of the next chunk, because the first chunk has the number 0. */
  done: count,
  /** The counts of the current chunk. The job's other counts contain only finished chunks. */
  inChunk: z.optional(z.object({ chunk: count, ...handledCounts })),
  /** True during an invocation. If an invocation finds true, the previous one was interrupted, perhaps within the next chunk. */
  isOpen: z.boolean(),
  /** True if the company's queue allows the job to run now. */
  isAdmitted: z.boolean(),
  /** The version of the user's row when the job last read the rights. All writes with earlier rights have ended. */
  authorVersion: z.optional(count),
  endedAt: z.optional(Timestamp),
  /** The time at which the table deletes the row, in seconds since 1970. */
  expiresAt: z.optional(count),
});
export type StoredBulk = z.infer<typeof StoredBulk>;

type Counts = Record<Outcome, number>;

export const countsBy = (countOf: (outcome: Outcome) => number): Counts => ({
  changed: countOf("changed"),
  unchanged: countOf("unchanged"),
  skipped: countOf("skipped"),
  failed: countOf("failed"),
});

export const noCounts = countsBy(() => 0);

export const plus = (a: Counts, b: Counts): Counts => countsBy((outcome) => a[outcome] + b[outcome]);

export const sumOf = ({ changed, unchanged, skipped, failed }: Counts): number =>
  changed + unchanged + skipped + failed;

/** Returns the saved counts of the current chunk. They are 0 after the end of the job. */
export const countsInChunk = (job: Pick<StoredBulk, "state" | "done" | "inChunk">): Counts =>
  job.inChunk?.chunk === job.done && !hasEnded(job) ? job.inChunk : noCounts;

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

/** `unprocessed`: the job has not handled the record. The job's counts do not contain such records. */
export const ResultOutcome = z.enum([...Outcome.options, "unprocessed"]);

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

/** One record of a job. For an undo, `before` and `after` have the changed fields before and after the change that is undone. */
export type Member = Pick<StoredResult, "id" | "before" | "after">;
