/** The stored row of an export into a file. */
import * as z from "zod/mini";
import { Id, Timestamp } from "#shared/schema.ts";

export const ExportState = z.enum(["running", "completed", "failed"]);

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
  state: ExportState,
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
