/** The stored row of an import, with the state of its job. */
import * as z from "zod/mini";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
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

export const FileColumn = named(
  "FileColumn",
  z.object({ header: z.string(), samples: z.array(z.string()) }),
  "A column of an imported file, and its first values.",
);
export type FileColumn = z.infer<typeof FileColumn>;

/* @__PURE__ */ explain([FileColumn], () => ({
  fields: {
    header: `As a mapping names it, cut at ${limits.csvHeader} characters. The second header \`City\` is \`City (2)\`.`,
    samples: `At most ${limits.columnSamples} values, cut at ${limits.columnSample} characters.`,
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

/** The checkpoint of a job. */
const Progress = z.object({
  /** Each step except `publish` reads the whole file. */
  step: z.enum(["check", "update", "write", "publish"]),
  /** The last row that this step has finished. */
  row: z.int(),
  /** Number of ids that the valid rows up to `row` need, for each kind of record. */
  done: Counts,
  /** Number of faulty rows of the file up to `row`, counted by the steps `check` and `update`. */
  skipped: z.int(),
  /** Number of chunks in the bucket. A chunk contains sorted rows for the company index. */
  stretches: z.int(),
  /** Rows up to `row` that change an existing prospect. After the step `update`, it is the number for the whole file. */
  updated: z.int(),
  /**
   * The state of the error report: multipart upload, ETags of its parts, and the S3 key of a file with the lines after these. Null until
   * the first checkpoint of the step.
   */
  report: z.nullable(z.object({ upload: z.nullable(z.string()), tags: z.array(z.string()), rest: z.string() })),
  /** Number of warnings for the rows up to `row`. Undefined if none were counted yet. */
  warnings: z.optional(z.int()),
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
  /** Absent if the import only creates prospects. */
  matching: z.optional(z.object({ by: MatchBy, onMatch: z.enum(["update", "skip"]) })),
  caller: z.object({ role: Role, permissions: z.array(Permission) }),
  /** The presigned URL's signature includes these headers. */
  headers: z.object({
    "content-type": z.string(),
    "if-none-match": z.string(),
    "content-length": z.optional(z.string()),
    "x-amz-checksum-sha256": z.optional(z.string()),
  }),
  /** The time at which the upload link expires, in milliseconds since 1970. */
  uploadUntil: z.int(),
  /** If the file is replaced, its ETag changes, and the import fails. */
  etag: z.nullable(z.string()),
  progress: Progress,
  /** Null until the whole file is checked. */
  total: z.nullable(Counts),
  /** Null until the ids are reserved. */
  first: z.nullable(Counts),
  /** The creation time of all records. Null until the ids are reserved. */
  startedAt: z.nullable(Timestamp),
  /** Invocations since the last checkpoint. If there are too many, the job fails. */
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
  /** The errors in the rows of the file, compressed. An import by upload has only the first ones (`limits.jobErrors`). */
  errors: z.instanceof(Uint8Array),
  /** Blocks of 128 ids, needed to delete the rows of a failed import. Null until they are reserved, or if none are needed. */
  prospectBlocks: z.nullable(Blocks),
  addressBlocks: z.nullable(Blocks),
  noteBlocks: z.nullable(Blocks),
  createdBy: Id,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** The end of the job's lease, in milliseconds since 1970. */
  runsUntil: z.int(),
  dryRun: z.optional(z.boolean()),
  failure: z.optional(z.string()),
  /** Absent until an invocation has read the file. */
  encoding: z.optional(Encoding),
  ignoredColumns: z.optional(z.array(z.string())),
  warnings: z.optional(z.int()),
  /** Only of a dry run of a file without a known header. */
  columns: z.optional(z.array(FileColumn)),
  /** Rows written to the table, the progress that clients see. It may be higher than in the checkpoint. */
  written: z.optional(z.int()),
  job: z.optional(StoredJob),
});
export type StoredImport = z.infer<typeof StoredImport>;
