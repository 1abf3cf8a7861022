/** Imports: what became of a file, as the interface shows it and as the table holds it. */
import * as z from "zod/mini";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { limits } from "#shared/limits.ts";
import { Id, named, PageSize, PathId, Timestamp } from "#shared/schema.ts";

export const RowFault = named(
  "RowFault",
  z.object({ row: z.int(), message: z.string() }),
  "Why a row was skipped. `row` is the row of a spreadsheet: the header is 1.",
);
export type RowFault = z.infer<typeof RowFault>;

const counts = { imported: z.int(), skipped: z.int() };

export const ImportResult = named(
  "ImportResult",
  z.object({ id: Id, ...counts, errors: z.array(RowFault) }),
  "What became of a file: each data row is either imported or skipped with one error.",
);
export type ImportResult = z.infer<typeof ImportResult>;

export const FileResult = named(
  "FileResult",
  z.object({ id: z.nullable(Id), dryRun: z.boolean(), ...counts, errors: z.array(RowFault) }),
  "What became of a file, or would become of it: each data row is either imported or skipped with one error.",
);
export type FileResult = z.infer<typeof FileResult>;

const state = z.enum(["awaiting_upload", "running", "completed", "failed", "cancelled"]);
export type ImportState = z.infer<typeof state>;

/** A link to a file of the service, for whoever holds it. */
export const FileLink = named("FileLink", z.object({ url: z.url(), expiresAt: Timestamp }));

export const Upload = named(
  "Upload",
  z.object({
    method: z.literal("PUT"),
    url: z.url(),
    headers: z.record(z.string(), z.string()),
    expiresAt: Timestamp,
  }),
  "Where the file goes: one request with this method, exactly these headers and the file as its body. It is taken once.",
);
export type Upload = z.infer<typeof Upload>;

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
  "Import",
  z.object({
    ...summary,
    errors: z.array(RowFault),
    errorReport: z.nullable(FileLink),
    upload: z.nullable(Upload),
  }),
  "An import. Its prospects are there from the moment on at which it is completed, and none of them before.",
);
export type Import = z.infer<typeof Import>;

export const ImportPage = named(
  "ImportPage",
  z.object({ items: z.array(ImportSummary), nextCursor: z.nullable(z.string()) }),
  "Imports, newest first.",
);
export type ImportPage = z.infer<typeof ImportPage>;

export const ImportQuery = z.object({
  cursor: z.optional(PathId),
  limit: z._default(PageSize, limits.pageSizeDefault),
});
export type ImportQuery = z.infer<typeof ImportQuery>;

/** Blocks of ids, both ends included. */
const Blocks = z.object({ from: z.int(), to: z.int() });
export type Blocks = z.infer<typeof Blocks>;

/** How many of each the rows of a file become, and so the first id of each, once ids are leased. */
const Counts = z.object({ prospect: z.int(), address: z.int(), note: z.int(), change: z.int() });
export type Counts = z.infer<typeof Counts>;
export const nothing: Counts = { prospect: 0, address: 0, note: 0, change: 0 };

/** How far the work on an uploaded file has come. Whoever goes on begins here. */
const Progress = z.object({
  /** The file is read once to check all of it, and once more to write its rows. */
  step: z.enum(["check", "write", "publish"]),
  /** The last row of the file that is done in this step. */
  row: z.int(),
  /** What the accepted ones among them become. */
  done: Counts,
  /** How many of them have an error, while the file is checked. Rows of the table that are older than this do not say. */
  skipped: z._default(z.int(), 0),
  /** Stretches of sorted rows that wait in the bucket. */
  stretches: z.int(),
  /** The report of errors: its parts in the bucket, and what waits there for the next part. Null: there is none yet. */
  report: z.nullable(z.object({ upload: z.nullable(z.string()), tags: z.array(z.string()), rest: z.string() })),
  /** Tags that the rows so far name and the company did not have. */
  newTags: z.array(z.string()),
});
export type Progress = z.infer<typeof Progress>;

/** What an import has that came by an upload. */
export const StoredJob = z.object({
  /** As it was sent. */
  mapping: z.nullable(z.record(z.string(), z.nullable(z.string()))),
  caller: z.object({ role: Role, permissions: z.array(Permission) }),
  /** The headers that the upload link demands. */
  headers: z.object({
    "content-type": z.string(),
    "if-none-match": z.string(),
    "content-length": z.optional(z.string()),
    "x-amz-checksum-sha256": z.optional(z.string()),
  }),
  /** Milliseconds since the epoch at which the link ends. */
  uploadUntil: z.int(),
  /** What was uploaded. */
  etag: z.nullable(z.string()),
  progress: Progress,
  /** All that the accepted rows become; null until the whole file is checked. */
  total: z.nullable(Counts),
  /** First ids, one for each; null until they are leased. */
  first: z.nullable(Counts),
  /** Instant of all rows. */
  startedAt: z.nullable(Timestamp),
  /** Runs that have begun since there was progress. */
  runs: z.int(),
  /** The report of errors is in the bucket. */
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
  /** Packed. */
  errors: z.instanceof(Uint8Array),
  /** What was leased for it, so that what it wrote can be removed; null where it needs none. */
  prospectBlocks: z.nullable(Blocks),
  addressBlocks: z.nullable(Blocks),
  noteBlocks: z.nullable(Blocks),
  createdBy: Id,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** Milliseconds since the epoch: who has not completed it until then is dead. */
  runsUntil: z.int(),
  dryRun: z.optional(z.boolean()),
  failure: z.optional(z.string()),
  /** Rows that are in the table already, as was last told: mostly some after the last place to go on from. */
  written: z.optional(z.int()),
  job: z.optional(StoredJob),
});
export type StoredImport = z.infer<typeof StoredImport>;
