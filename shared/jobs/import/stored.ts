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

/** A range of blocks of 128 ids. Both ends belong to the range. */
const Blocks = z.object({ from: z.int(), to: z.int() });
export type Blocks = z.infer<typeof Blocks>;

/** A number for each kind of record that an import creates: a count or a first id. */
const Counts = z.object({ prospect: z.int(), address: z.int(), note: z.int(), change: z.int() });
export type Counts = z.infer<typeof Counts>;
export const none: Counts = { prospect: 0, address: 0, note: 0, change: 0 };

/** The checkpoint of an import by upload, from which the next invocation continues. */
const Progress = z.object({
  /**
   * The current step of the job. Each step except the last reads the whole file: to check its rows, to change existing prospects, or to
   * write new ones.
   */
  step: z.enum(["check", "update", "write", "publish"]),
  /** The number of the last row that this step has finished. */
  row: z.int(),
  /** For each kind of record, the number of ids that the valid rows up to `row` need. */
  done: Counts,
  /** The number of faulty rows up to `row` in the step `check`. The attribute is absent in rows that an older version stored. */
  skipped: z._default(z.int(), 0),
  /** The number of chunks of sorted index rows that are stored in the bucket. */
  stretches: z.int(),
  /** The number of existing prospects that the rows up to `row` change. */
  updated: z._default(z.int(), 0),
  /**
   * The error report: its uploaded parts, and the S3 key of the file with the lines after these parts. It is null before the first error.
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

/** The attributes that only an import by upload has. */
export const StoredJob = z.object({
  mapping: z.nullable(z.record(z.string(), z.nullable(z.string()))),
  /** How rows are matched with existing prospects. Absent if the import only creates prospects. */
  matching: z.optional(z.object({ by: MatchBy, onMatch: z.enum(["update", "skip"]) })),
  caller: z.object({ role: Role, permissions: z.array(Permission) }),
  /** The headers that the upload request must have. They are part of the presigned URL's signature. */
  headers: z.object({
    "content-type": z.string(),
    "if-none-match": z.string(),
    "content-length": z.optional(z.string()),
    "x-amz-checksum-sha256": z.optional(z.string()),
  }),
  /** The time at which the upload link expires, in milliseconds since 1970. */
  uploadUntil: z.int(),
  /** The ETag of the uploaded file. It shows whether the file was replaced. */
  etag: z.nullable(z.string()),
  progress: Progress,
  /** For each kind of record, the number of ids that all valid rows need. It is null until the whole file is checked. */
  total: z.nullable(Counts),
  /** The first id of each kind of record. It is null until the ids are reserved. */
  first: z.nullable(Counts),
  /** The creation time of all records. It is null until the ids are reserved. */
  startedAt: z.nullable(Timestamp),
  /** The number of invocations since the last checkpoint. The job fails if this number becomes too high. */
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
  /** The number of changed prospects. Absent in rows that an older version stored. */
  updated: z._default(z.int(), 0),
  /** The faults of rows, compressed. */
  errors: z.instanceof(Uint8Array),
  /** The reserved id blocks, by which the rows of a failed import are found and removed. Null if the file needs no such ids. */
  prospectBlocks: z.nullable(Blocks),
  addressBlocks: z.nullable(Blocks),
  noteBlocks: z.nullable(Blocks),
  createdBy: Id,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** The end of the lease, in milliseconds since 1970. */
  runsUntil: z.int(),
  dryRun: z.optional(z.boolean()),
  failure: z.optional(z.string()),
  /** Absent in an import by upload until an invocation has read the file. */
  encoding: z.optional(Encoding),
  ignoredColumns: z.optional(z.array(z.string())),
  /** The number of rows in the table, which clients see as progress. It may be ahead of the checkpoint. */
  written: z.optional(z.int()),
  job: z.optional(StoredJob),
});
export type StoredImport = z.infer<typeof StoredImport>;
