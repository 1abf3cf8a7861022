/** The stored row of an import. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { packed } from "#shared/db/packed.ts";
import { explain } from "#shared/documentation.ts";
import { jobFields, newJobRow } from "#shared/jobs/job.ts";
import * as limits from "#shared/limits.ts";
import { Encoding } from "#shared/prospects/csv/encoding.ts";
import { Mapping } from "#shared/prospects/csv/header.ts";
import { MatchBy, type OnMatch } from "#shared/prospects/match-key.ts";
import { named, Timestamp } from "#shared/schema.ts";

export const RowFault = named(
  "RowFault",
  z.object({ row: z.int(), message: z.string() }),
  "Why a row was skipped. `row` is its number in a spreadsheet: the header is row 1.",
);
export type RowFault = z.infer<typeof RowFault>;
export const RowFaults = z.array(RowFault);

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

const Progress = z.object({
  /** The steps `check` and `write` read the whole file. */
  step: z.enum(["check", "write", "publish"]),
  /** The last row that this step has finished. */
  row: z.int(),
  /** Number of ids that the valid rows up to `row` need, for each kind of record. */
  done: Counts,
  /** Number of faulty rows up to `row`. The step `write` counts them only if rows change prospects. */
  skipped: z.int(),
  /** Number of rows up to `row` that change an existing prospect. */
  updated: z.int(),
  /** Number of chunks in the bucket. A chunk contains sorted rows for the company index. */
  chunks: z.int(),
  /** The multipart upload of the error report with its ETags, and the S3 key of the lines after it. Absent until the first checkpoint. */
  report: z.optional(z.object({ upload: z.nullable(z.string()), tags: z.array(z.string()), rest: z.string() })),
  /** The tags in the rows up to `row` that the company does not have yet. */
  newTags: z.array(z.string()),
});
export type Progress = z.infer<typeof Progress>;

export const beginningOf = (step: Progress["step"]): Progress => ({
  step,
  row: 0,
  done: none,
  skipped: 0,
  updated: 0,
  chunks: 0,
  newTags: [],
});

export const StoredImport = z.object({
  ...jobFields,
  type: z.literal("import"),
  state: ImportState,
  processed: z.int(),
  ...importCounts,
  /** Number of rows written to the table, the progress that clients see. It may be higher than in the checkpoint. */
  written: z.int(),
  warnings: z.int(),
  /** The errors in the rows of the file, compressed. An import by upload has only the first ones (`limits.jobErrors`). */
  errors: z.instanceof(Uint8Array),
  hasReport: z.boolean(),
  ignoredColumns: z.array(z.string()),
  /** Only for a dry run of a file without a known header. */
  columns: z.optional(z.array(FileColumn)),
  /** Absent until an invocation has read the file. */
  encoding: z.optional(Encoding),
  dryRun: z.boolean(),
  mapping: z.optional(Mapping),
  /** Absent if the import only creates prospects. */
  matching: z.optional(z.object({ by: MatchBy, onMatch: z.enum(["update", "skip"]) })),
  /** The rights of the user at the beginning, which decide to whom the new prospects are assigned. */
  caller: z.object({ role: Role, permissions: z.array(Permission) }),
  /** Absent if the file came with the request that imports it. */
  upload: z.optional(
    z.object({
      /** The presigned URL's signature includes these headers. */
      headers: z.object({
        "content-type": z.string(),
        "if-none-match": z.string(),
        "content-length": z.optional(z.string()),
        "x-amz-checksum-sha256": z.optional(z.string()),
      }),
      /** The time at which the upload link expires, in milliseconds since 1970. */
      untilMs: z.int(),
    }),
  ),
  /** The ETag of the uploaded file. If the file is replaced during the import, its ETag differs, and the import fails. */
  etag: z.optional(z.string()),
  progress: Progress,
  /** The ids that the new records need, and the number of rows that change a prospect. Absent until the whole file is checked. */
  total: z.optional(Counts),
  changes: z.optional(z.int()),
  /** The first of the reserved ids, for each kind of record. Absent until the ids are reserved. */
  first: z.optional(Counts),
  /** Blocks of 128 ids, needed to delete the rows of a failed import. Null until they are reserved, or if none are needed. */
  prospectBlocks: z.nullable(Blocks),
  addressBlocks: z.nullable(Blocks),
  noteBlocks: z.nullable(Blocks),
  /** The creation time of all records. Absent until the ids are reserved. */
  startedAt: z.optional(Timestamp),
});
export type StoredImport = z.infer<typeof StoredImport>;

export function newImport(
  caller: Caller,
  id: number,
  nowMs: number,
  { mapping, matchBy, onMatch, dryRun = false }: ImportOptions,
): StoredImport {
  return {
    type: "import",
    ...newJobRow(caller, id, nowMs),
    state: "running",
    processed: 0,
    imported: 0,
    updated: 0,
    skipped: 0,
    written: 0,
    warnings: 0,
    errors: packed([]),
    hasReport: false,
    ignoredColumns: [],
    dryRun,
    mapping,
    matching:
      matchBy === undefined || onMatch === undefined || onMatch === "create" ? undefined : { by: matchBy, onMatch },
    caller: { role: caller.role, permissions: [...caller.permissions] },
    progress: beginningOf("check"),
    prospectBlocks: null,
    addressBlocks: null,
    noteBlocks: null,
  };
}

export interface ImportOptions {
  readonly mapping?: Mapping | undefined;
  readonly dryRun?: boolean | undefined;
  readonly matchBy?: MatchBy | undefined;
  readonly onMatch?: OnMatch | undefined;
}
