/** The stored row of an import, with the state of its job. */
import * as z from "zod/mini";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import { Encoding } from "#shared/prospects/csv/encoding.ts";
import { MatchBy } from "#shared/prospects/csv/key.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";

export const RowFault = named(
  "RowFault",
  z.object({ row: z.int(), message: z.string() }),
  "Why a row was skipped. `row` is its number in a spreadsheet: the header is row 1.",
);
export type RowFault = z.infer<typeof RowFault>;

/* @__PURE__ */ explain([RowFault], () => ({
  fields: {
    row: "The row number as a spreadsheet counts: the header is row 1.",
    message: "All faults of the row, with the names of their columns.",
  },
}));

export const importCounts = { imported: z.int(), updated: z.int(), skipped: z.int() };

export const ImportState = z.enum(["awaiting_upload", "running", "completed", "failed", "cancelled"]);
export type ImportState = z.infer<typeof ImportState>;

/** A range of blocks of 128 ids, both ends included. */
const Blocks = z.object({ from: z.int(), to: z.int() });
export type Blocks = z.infer<typeof Blocks>;

/** A number for each kind of record that an import creates: how many such records there are, or the first of their ids. */
const Counts = z.object({ prospect: z.int(), address: z.int(), note: z.int(), change: z.int() });
export type Counts = z.infer<typeof Counts>;
export const none: Counts = { prospect: 0, address: 0, note: 0, change: 0 };

/** The checkpoint of a job: the stored position from which the next invocation continues. */
const Progress = z.object({
  /**
   * The current step of the job. Each step except `publish` reads the whole file: `check` checks its rows, `update` changes existing
   * prospects, and `write` writes new ones.
   */
  step: z.enum(["check", "update", "write", "publish"]),
  /** The number of the last row that this step has finished. */
  row: z.int(),
  /** Number of ids that the valid rows up to `row` need, for each kind of record. */
  done: Counts,
  /**
   * Number of faulty rows of the file up to `row`, counted by the steps `check` and `update`. A job that an older release has stored does
   * not have this attribute.
   */
  skipped: z._default(z.int(), 0),
  /** Number of chunks in the bucket. A chunk contains sorted rows for the search index. */
  stretches: z.int(),
  /** Number of rows up to `row` that change an existing prospect. After the step `update`, it is the number for the whole file. */
  updated: z._default(z.int(), 0),
  /**
   * The state of the error report, which is uploaded in parts. `upload` is the id of the multipart upload, `tags` are the ETags of the
   * uploaded parts, and `rest` is the S3 key of a file with the lines after these parts. Null until the first checkpoint of the current
   * step.
   */
  report: z.nullable(z.object({ upload: z.nullable(z.string()), tags: z.array(z.string()), rest: z.string() })),
  /** The tags in the rows up to `row` that the company does not have yet. */
  newTags: z.array(z.string()),
});
export type Progress = z.infer<typeof Progress>;

export const beginningOf = (step: Progress["step"]): Progress => ({
  step,
  row: 0,
  done: none,
  skipped: 0,
  stretches: 0,
  updated: 0,
  report: null,
  newTags: [],
});

/** The attributes that only an import of an uploaded file has. */
export const StoredJob = z.object({
  mapping: z.nullable(z.record(z.string(), z.nullable(z.string()))),
  /** How rows are matched with existing prospects. It is absent if the import only creates prospects. */
  matching: z.optional(z.object({ by: MatchBy, onMatch: z.enum(["update", "skip"]) })),
  caller: z.object({ role: Role, permissions: z.array(Permission) }),
  /** The headers that the upload request must have, because the presigned URL's signature includes them. */
  headers: z.object({
    "content-type": z.string(),
    "if-none-match": z.string(),
    "content-length": z.optional(z.string()),
    "x-amz-checksum-sha256": z.optional(z.string()),
  }),
  /** The time at which the upload link expires, in milliseconds since 1970. */
  uploadUntil: z.int(),
  /** The ETag of the uploaded file. If the file is replaced, its ETag changes, and the import fails. */
  etag: z.nullable(z.string()),
  progress: Progress,
  /** Number of ids that all valid rows need, for each kind of record. Null until the whole file is checked. */
  total: z.nullable(Counts),
  /** The first id of each kind of record. Null until the ids are reserved. */
  first: z.nullable(Counts),
  /** The creation time that all records of the import get. Null until the ids are reserved. */
  startedAt: z.nullable(Timestamp),
  /** Number of invocations since the last checkpoint. If it becomes too high, the job fails, because retries do not help. */
  runs: z.int(),
  hasReport: z.boolean(),
});
export type StoredJob = z.infer<typeof StoredJob>;

export const StoredImport = z.object({
  type: z.literal("import"),
  id: Id,
  companyId: Id,
  state: ImportState,
  processed: z.int(),
  ...importCounts,
  /** Number of rows that change an existing prospect. Rows of the table that an older release has stored do not have this attribute. */
  updated: z._default(z.int(), 0),
  /** The errors in the rows of the file, compressed. An import by upload has only the first ones (`limits.jobErrors`). */
  errors: z.instanceof(Uint8Array),
  /**
   * The reserved blocks of 128 ids. They are needed to find and delete the rows of a failed import. Null until the ids are reserved, and
   * null for a kind of record of which the file needs no ids.
   */
  prospectBlocks: z.nullable(Blocks),
  addressBlocks: z.nullable(Blocks),
  noteBlocks: z.nullable(Blocks),
  createdBy: Id,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** The end of the job's lease, in milliseconds since 1970. Until this time, no other invocation works on the job. */
  runsUntil: z.int(),
  dryRun: z.optional(z.boolean()),
  failure: z.optional(z.string()),
  /** The encoding of the file. It is absent until an invocation of the job has read the file. */
  encoding: z.optional(Encoding),
  ignoredColumns: z.optional(z.array(z.string())),
  /**
   * Number of rows of the file that are written to the table. Clients see this number as progress. It may be higher than the number in the
   * checkpoint.
   */
  written: z.optional(z.int()),
  job: z.optional(StoredJob),
});
export type StoredImport = z.infer<typeof StoredImport>;
