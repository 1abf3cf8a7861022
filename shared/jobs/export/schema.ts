/** The schemas of exports into a file: API requests and responses. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { ExportState } from "#shared/jobs/export/stored.ts";
import { FileLink } from "#shared/jobs/s3-keys.ts";
import { filterBody, filterBodyTexts, filterParameters, filterTexts, withNear } from "#shared/prospects/filter.ts";
import { Flag, Id, named, Timestamp } from "#shared/schema.ts";

export const Export = named(
  "ExportJob",
  z.object({
    id: Id,
    state: ExportState,
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

const Columns = z.literal("all", { error: "must be all, or left out" });
const formTexts = {
  columns:
    "`all` adds the columns `sourceId`, `secondaryPhoneNumber`, `updatedAt` and `customFieldData` (JSON) after the others.",
  bom: "If true, the file begins with a byte order mark, by which Excel recognises UTF-8.",
};
const formBody = { columns: z.optional(Columns), bom: z.optional(z.boolean()) };

export const ExportQuery = z
  .object({ ...filterParameters, columns: z.optional(Columns), bom: z.optional(Flag) })
  .check(withNear());

/* @__PURE__ */ explain([ExportQuery], () => ({
  fields: {
    ...filterTexts(),
    columns: { description: formTexts.columns, example: "all" },
    bom: { description: formTexts.bom, example: "true" },
  },
}));

/** The filters of the prospect list as strings, as in a query string. They are stored in this form and parsed when the job starts. */
export const NewExport = named(
  "NewExport",
  z.object({ ...filterBody, ...formBody }),
  "The filters of the list, as texts, and the form of the file.",
);
export type NewExport = z.infer<typeof NewExport>;

/* @__PURE__ */ explain([NewExport], () => ({
  fields: { ...filterBodyTexts(), ...formTexts },
  example: { status: "New,Go Back", dateFrom: "2026-06-01" },
}));
