/** The schemas of imports: API requests and answers, and the stored row. */

import * as z from "zod/mini";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import { FileLink } from "#shared/jobs/file-link.ts";
import * as limits from "#shared/limits.ts";
import { Encoding } from "#shared/prospects/csv/encoding.ts";
import { MAPPING_TEXT, MappingText } from "#shared/prospects/csv/header.ts";
import { MatchBy, OnMatch } from "#shared/prospects/csv/key.ts";
import { Flag, Id, named, PageSize, PathId, Timestamp } from "#shared/schema.ts";

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

const counts = { imported: z.int(), updated: z.int(), skipped: z.int() };

export const ImportResult = named(
  "ImportResult",
  z.object({ id: Id, ...counts, errors: z.array(RowFault) }),
  "The result of an import: each data row is imported, updates a prospect, or is skipped with one error.",
);
export type ImportResult = z.infer<typeof ImportResult>;

export const FileResult = named(
  "FileResult",
  z.object({
    id: z.nullable(Id),
    dryRun: z.boolean(),
    ...counts,
    encoding: Encoding,
    ignoredColumns: z.array(z.string()),
    errors: z.array(RowFault),
  }),
  "The result of an import or of a dry run: each data row is imported, updates a prospect, or is skipped with one error.",
);
export type FileResult = z.infer<typeof FileResult>;

/* @__PURE__ */ explain([FileResult], () => ({
  fields: { id: "Null for a dry run, which the service does not keep." },
}));

const state = z.enum(["awaiting_upload", "running", "completed", "failed", "cancelled"]);
export type ImportState = z.infer<typeof state>;

export const Upload = named(
  "Upload",
  z.object({
    method: z.literal("PUT"),
    url: z.url(),
    headers: z.record(z.string(), z.string()),
    expiresAt: Timestamp,
  }),
  "How to send the file: one request with this method, exactly these headers and the file as its body. The link accepts one upload.",
);
export type Upload = z.infer<typeof Upload>;

/* @__PURE__ */ explain([Upload], () => ({
  fields: {
    method: "Method of the request that sends the file.",
    url: "Contains its own signature: send no token with it.",
    headers: "Send the file with exactly these headers.",
    expiresAt: "When the link expires.",
  },
}));

const summary = {
  id: Id,
  state,
  dryRun: z.boolean(),
  processed: z.int(),
  written: z.int(),
  ...counts,
  failure: z.nullable(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const ImportSummary = named("ImportSummary", z.object(summary), "An import, without its errors.");
export type ImportSummary = z.infer<typeof ImportSummary>;

export const Import = named(
  "ImportJob",
  z.object({
    ...summary,
    encoding: z.nullable(Encoding),
    ignoredColumns: z.array(z.string()),
    errors: z.array(RowFault),
    errorReport: z.nullable(FileLink),
    upload: z.nullable(Upload),
  }),
  "An import. All of its prospects become visible at once when it is completed.",
);
export type Import = z.infer<typeof Import>;

/* @__PURE__ */ explain([ImportResult, FileResult, ImportSummary, Import], () => ({
  fields: {
    state: "The prospects of the import are visible once it is `completed`.",
    dryRun: "If true, the service only checks the file and creates nothing.",
    imported: "The number of created prospects.",
    updated:
      "The number of rows that matched a prospect and changed it, or found it as they wanted it. It is 0 without `onMatch=update`. An import by upload that has not completed shows the rows so far.",
    skipped: "The number of rows with an error.",
    processed: "The number of data rows that were read.",
    written: "The number of rows in the table. None of them is visible before all are written.",
    encoding:
      "The encoding of the file. A file that is neither UTF-8 nor UTF-16 is read as Windows-1252. Null until an uploaded file is read.",
    ignoredColumns: `The headers of columns that the import did not read, at most ${limits.ignoredColumns}, cut at ${limits.ignoredColumn} characters. An empty text stands for filled columns without a header.`,
    failure: "Why the import failed, in words; null unless it failed.",
    errors: "One entry for each skipped row, in the order of the file.",
    errorReport: `A CSV file of all errors, if there are more than ${limits.jobErrors}. Kept for a month.`,
    upload: "Where to send the file; null unless the import waits for one.",
  },
}));
/* @__PURE__ */ explain([Import], () => ({
  fields: {
    errors: `One entry for each skipped row, in the order of the file. For an import by upload only the first ${limits.jobErrors}.`,
  },
}));

export const ImportPage = named(
  "ImportPage",
  z.object({ items: z.array(ImportSummary), nextCursor: z.nullable(z.string()) }),
  "Imports, newest first.",
);
export type ImportPage = z.infer<typeof ImportPage>;

/* @__PURE__ */ explain([ImportPage], () => ({
  fields: { items: "One page, newest first.", nextCursor: "Cursor of the next page; null on the last one." },
}));

export const ImportQuery = z.object({
  cursor: z.optional(PathId),
  limit: z._default(PageSize, limits.pageSizeDefault),
});
export type ImportQuery = z.infer<typeof ImportQuery>;

/* @__PURE__ */ explain([ImportQuery], () => ({
  fields: {
    cursor: { description: "`nextCursor` of the previous page.", example: 1032 },
    limit: {
      description: `A larger value counts as ${limits.pageSizeMax}.`,
      example: 100,
      schema: { type: "integer", minimum: 1, default: limits.pageSizeDefault },
    },
  },
}));

export const matchByWithOnMatch = z.refine<{ matchBy?: unknown; onMatch?: unknown }>(
  ({ matchBy, onMatch }) => (matchBy === undefined) === (onMatch === undefined),
  { error: "must be sent together with onMatch", path: ["matchBy"] },
);

export const MATCH_BY_TEXT =
  "The key by which rows are matched with the prospects that the caller may see: the column `id`, `sourceId` or `email`. A row is skipped with an error if several prospects have its key, or an earlier row of the file. A row with an empty key creates a prospect.";
export const ON_MATCH_TEXT =
  "The effect of a row whose key one prospect has. `update` changes the filled cells of the prospect, as a PATCH does. `skip` skips the row with an error. `create` creates a prospect. A row whose key no prospect has creates a prospect, except that an unknown `id` is an error.";

export const FileQuery = z
  .object({
    dryRun: z.optional(Flag),
    mapping: z.optional(MappingText),
    matchBy: z.optional(MatchBy),
    onMatch: z.optional(OnMatch),
  })
  .check(matchByWithOnMatch);

/* @__PURE__ */ explain([FileQuery], () => ({
  fields: {
    dryRun: { description: "If true, the service only checks the file and creates nothing.", example: "true" },
    mapping: { description: `JSON: ${MAPPING_TEXT}`, example: '{"Full name":"name"}' },
    matchBy: { description: MATCH_BY_TEXT, example: "sourceId" },
    onMatch: { description: ON_MATCH_TEXT, example: "update" },
  },
}));

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
  state,
  processed: z.int(),
  ...counts,
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
