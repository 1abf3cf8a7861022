/** The schemas of exports into a file: API requests and answers, and the stored row. */

import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { FileLink } from "#shared/jobs/file-link.ts";
import * as limits from "#shared/limits.ts";
import { filterTexts } from "#shared/prospects/filter.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";

const state = z.enum(["running", "completed", "failed"]);

export const Export = named(
  "Export",
  z.object({
    id: Id,
    state,
    total: z.nullable(z.int()),
    processed: z.int(),
    bytes: z.nullable(z.int()),
    file: z.nullable(FileLink),
    keptUntil: z.nullable(Timestamp),
    failure: z.nullable(z.string()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
  "An export into a file. The file holds the prospects that the user who began it may see.",
);
export type Export = z.infer<typeof Export>;

/* @__PURE__ */ explain([Export], () => ({
  fields: {
    state: "The file is ready once the export is `completed`.",
    total: "The number of prospects in the export; null until the export has counted them.",
    processed: "The number of prospects in the file so far.",
    bytes: "Size of the file, gzipped.",
    file: "Link to the file, once it is ready.",
    keptUntil: "When the service removes the file.",
    failure: "Why the export failed, in words; null unless it failed.",
  },
}));

const Parameter = z.optional(z.string().check(z.maxLength(limits.queryParameter)));

/** The filters of the prospect list as query texts. They are stored as sent and parsed when the job starts. */
export const NewExport = named(
  "NewExport",
  z.object({
    bbox: Parameter,
    dateFrom: Parameter,
    dateTo: Parameter,
    status: Parameter,
    assignedToUserId: Parameter,
    rep: Parameter,
    tagId: Parameter,
    city: Parameter,
    search: Parameter,
  }),
  "The filters of the list, as texts.",
);
export type NewExport = z.infer<typeof NewExport>;

/* @__PURE__ */ explain([NewExport], () => ({
  fields: filterTexts(),
  example: { status: "New,Go Back", dateFrom: "2026-06-01" },
}));

/** The uploaded parts of the file, and the state of the gzip stream after the last of them. */
const Parts = z.object({
  upload: z.string(),
  tags: z.array(z.string()),
  /** The checksum and the length of the text so far. The gzip trailer contains both. */
  crc: z.number(),
  textBytes: z.number(),
  fileBytes: z.int(),
});
export type Parts = z.infer<typeof Parts>;

export const StoredExport = z.object({
  type: z.literal("export"),
  id: Id,
  companyId: Id,
  state,
  filter: z.record(z.string(), z.string()),
  createdBy: Id,
  /** If set, the file contains only prospects that are assigned to this user. Null means all prospects of the company. */
  assignee: z.nullable(Id),
  /** The number of selected prospects. It is null until the job has selected them. */
  total: z.nullable(z.int()),
  /** The number of prospects in uploaded parts. The next invocation continues after them. */
  processed: z.int(),
  /** The number of prospects read so far, which clients see as progress. It may exceed `processed`. */
  read: z.optional(z.int()),
  parts: z.nullable(Parts),
  failure: z.optional(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** The end of the lease, in milliseconds since 1970. */
  runsUntil: z.int(),
  /** The number of invocations since the last uploaded part. The job fails if this number becomes too high. */
  runs: z.int(),
});
export type StoredExport = z.infer<typeof StoredExport>;
