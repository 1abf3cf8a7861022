/** Exports into the bucket: as the interface shows them and as the table holds them. */
import * as z from "zod/mini";
import { FileLink } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";
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
  "An export into a file. It holds what its maker may see.",
);
export type Export = z.infer<typeof Export>;

const Parameter = z.optional(z.string().check(z.maxLength(limits.queryParameter)));

/** The filters of the list as texts, in the words of a query: they are kept so, and read by each run of the work. */
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
);
export type NewExport = z.infer<typeof NewExport>;
