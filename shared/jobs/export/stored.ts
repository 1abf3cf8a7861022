/** The stored row of an export into a file. */
import * as z from "zod/mini";
import { jobFields } from "#shared/jobs/job.ts";
import { Id } from "#shared/schema.ts";

export const ExportState = z.enum(["running", "completed", "failed"]);

/** The uploaded parts, and the state of the compression after them. */
const Parts = z.object({
  upload: z.string(),
  tags: z.array(z.string()),
  crc: z.number(),
  textBytes: z.number(),
  fileBytes: z.int(),
});
export type Parts = z.infer<typeof Parts>;

export const StoredExport = z.object({
  ...jobFields,
  type: z.literal("export"),
  state: ExportState,
  filter: z.record(z.string(), z.string()),
  columns: z.optional(z.literal("all")),
  bom: z.optional(z.boolean()),
  /** If set, the file contains only prospects of this user. */
  assignee: z.nullable(Id),
  /** Null until the job has selected the prospects. */
  total: z.nullable(z.int()),
  /** Number of prospects in uploaded parts. */
  processed: z.int(),
  /** Number of prospects read so far, the progress that clients see. It may be higher than `processed`. */
  read: z.int(),
  parts: z.nullable(Parts),
});
export type StoredExport = z.infer<typeof StoredExport>;
