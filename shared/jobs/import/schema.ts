/** The schemas of the API for imports. Separate from stored.ts, so that the bundles of jobs do not contain them. */
import * as z from "zod/mini";
import { explain, pageSizeText, pageTexts } from "#shared/documentation.ts";
import { FileColumn, ImportState, importCounts, RowFault } from "#shared/jobs/import/stored.ts";
import { FileLink } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { Encoding } from "#shared/prospects/csv/encoding.ts";
import { MAPPING_TEXT, MappingText } from "#shared/prospects/csv/header.ts";
import { MatchBy, OnMatch } from "#shared/prospects/match-key.ts";
import { cursorPage, Flag, Id, named, PageSize, PathId, Timestamp } from "#shared/schema.ts";

export const ImportResult = named(
  "ImportResult",
  z.object({ id: Id, ...importCounts, errors: z.array(RowFault) }),
  "The result of an import: each data row is imported, updates a prospect, or is skipped with one error.",
);
export type ImportResult = z.infer<typeof ImportResult>;

export const FileResult = named(
  "FileResult",
  z.object({
    id: z.nullable(Id),
    dryRun: z.boolean(),
    ...importCounts,
    encoding: Encoding,
    ignoredColumns: z.array(z.string()),
    warnings: z.int(),
    columns: z.optional(z.array(FileColumn)),
    errors: z.array(RowFault),
  }),
  "The result of an import or of a dry run: each data row is imported, updates a prospect, or is skipped with one error.",
);
export type FileResult = z.infer<typeof FileResult>;

/* @__PURE__ */ explain([FileResult], () => ({
  fields: { id: "Null for a dry run, which the service does not keep." },
}));

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
  state: ImportState,
  dryRun: z.boolean(),
  processed: z.int(),
  written: z.int(),
  ...importCounts,
  failure: z.nullable(z.string()),
  createdByUserId: Id,
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
    warnings: z.int(),
    columns: z.optional(z.array(FileColumn)),
    errors: z.array(RowFault),
    errorReport: z.nullable(FileLink),
    upload: z.nullable(Upload),
  }),
  "An import. The prospects that it creates become visible together when it is completed. Its updates are visible immediately.",
);
export type Import = z.infer<typeof Import>;

/* @__PURE__ */ explain([ImportResult, FileResult, ImportSummary, Import], () => ({
  fields: {
    state:
      "The created prospects are visible once it is `completed`. Updates are visible immediately, and remain if the import fails or is cancelled.",
    dryRun: "If true, the service only checks the file and writes nothing.",
    imported: "The number of created prospects. It is 0 until the import is completed.",
    updated:
      "The number of rows that matched a prospect and changed it, or found it as they wanted it. It is 0 without `onMatch=update`. An import by upload that has not completed shows the rows so far, whose changes are visible. If it was cancelled or has failed, it may have changed some more. A dry run shows the number of rows that would update a prospect.",
    skipped: "The number of rows with an error.",
    processed: "The number of data rows that were read.",
    written:
      "The number of rows that are written: updates, which are visible immediately, and created prospects, which are visible once the import is completed. If it fails or is cancelled, only the updates remain.",
    encoding:
      "The encoding of the file. A file that is neither UTF-8 nor UTF-16 is read as Windows-1252. Null until an uploaded file is read.",
    ignoredColumns: `The headers of columns that the import did not read, at most ${limits.ignoredColumns}, cut at ${limits.ignoredColumn} characters. An empty text means that filled columns have no header.`,
    warnings:
      "The number of values that were left empty: faulty ones in columns whose header is a synonym, such as a `Sales Rep` who is no user.",
    columns: `Only in the answer to a dry run of a file of which no header is known: its first ${limits.mappedColumns} columns, for a \`mapping\`.`,
    failure: "Why the import failed, in words; null unless it failed.",
    createdByUserId: "The user who began the import.",
    errors: "One entry for each skipped row, in the order of the file.",
    errorReport: `A CSV file of all errors, if there are more than ${limits.jobErrors}. The service keeps it for 30 days, unless the operator has chosen another number (setting \`importFileDays\`).`,
    upload: "Where to send the file; null unless the import waits for one.",
  },
}));
/* @__PURE__ */ explain([Import], () => ({
  fields: {
    errors: `One entry for each skipped row, in the order of the file. For an import by upload only the first ${limits.jobErrors}.`,
  },
}));

export const ImportPage = cursorPage("ImportPage", ImportSummary, "Imports, newest first.");
export type ImportPage = z.infer<typeof ImportPage>;

/* @__PURE__ */ explain([ImportPage], () => pageTexts());

export const ImportQuery = z.object({
  cursor: z.optional(PathId),
  limit: z._default(PageSize, limits.pageSizeDefault),
});
export type ImportQuery = z.infer<typeof ImportQuery>;

/* @__PURE__ */ explain([ImportQuery], () => ({
  fields: {
    cursor: { description: "`nextCursor` of the previous page.", example: 1032 },
    limit: pageSizeText(),
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
    dryRun: { description: "If true, the service only checks the file and writes nothing.", example: "true" },
    mapping: { description: `JSON: ${MAPPING_TEXT}`, example: '{"Full name":"name"}' },
    matchBy: { description: MATCH_BY_TEXT, example: "sourceId" },
    onMatch: { description: ON_MATCH_TEXT, example: "update" },
  },
}));
