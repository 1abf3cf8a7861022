/** The stored row of an export into a file. */
import * as z from "zod/mini";
import { Id, Timestamp } from "#shared/schema.ts";

export const ExportState = z.enum(["running", "completed", "failed"]);

/** The uploaded parts of the file, and the state of the compression after these parts. */
const Parts = z.object({
  upload: z.string(),
  tags: z.array(z.string()),
  /** The checksum and the length of the text so far. The end of the gzip file must contain both. */
  crc: z.number(),
  textBytes: z.number(),
  fileBytes: z.int(),
});
export type Parts = z.infer<typeof Parts>;

export const StoredExport = z.object({
  type: z.literal("export"),
  id: Id,
  companyId: Id,
  state: ExportState,
  filter: z.record(z.string(), z.string()),
  createdBy: Id,
  /**
   * If set, the file contains only prospects that are assigned to this user. Null means that it may contain all prospects of the company.
   */
  assignee: z.nullable(Id),
  /** Number of selected prospects. Null until the job has selected them. */
  total: z.nullable(z.int()),
  /** Number of prospects in uploaded parts. The next invocation continues after them. */
  processed: z.int(),
  /** Number of prospects that were read so far. Clients see this number as progress. It may be higher than `processed`. */
  read: z.optional(z.int()),
  parts: z.nullable(Parts),
  failure: z.optional(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** The end of the job's lease, in milliseconds since 1970. Until this time, no other invocation works on the job. */
  runsUntil: z.int(),
  /** Number of invocations since the last uploaded part. If it becomes too high, the job fails, because retries do not help. */
  runs: z.int(),
});
export type StoredExport = z.infer<typeof StoredExport>;
