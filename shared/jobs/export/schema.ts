/** The schemas of exports into a file, for the API and for the table. */

import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { FileLink } from "#shared/jobs/file-link.ts";
import { limits } from "#shared/limits.ts";
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

/** The filters of the prospect list as query texts. The table stores the texts as they were sent, and the first run parses them. */
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

/** The parts of the file that are in the bucket, with the state of the gzip stream after the last of these parts. */
const Parts = z.object({
  /** The id of the multipart upload. */
  upload: z.string(),
  tags: z.array(z.string()),
  /** The checksum and the length of the uncompressed text so far. A gzip file ends with both. */
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
  /** The id of the assignee whose prospects the file holds. Null means the prospects of the whole company. */
  assignee: z.nullable(Id),
  /** The number of selected prospects. It is null until the first run has selected them. */
  total: z.nullable(z.int()),
  /** The number of prospects in finished parts. A new run continues after these prospects. */
  processed: z.int(),
  /** The number of prospects read so far, which clients see as progress. Some of these prospects may not be in a part yet. */
  read: z.optional(z.int()),
  parts: z.nullable(Parts),
  failure: z.optional(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** The end of the lease, in milliseconds since the epoch. */
  runsUntil: z.int(),
  /** The number of runs since the last progress. */
  runs: z.int(),
});
export type StoredExport = z.infer<typeof StoredExport>;
