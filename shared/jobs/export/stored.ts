/** Exports as the table holds them. */
import * as z from "zod/mini";
import { Id, Timestamp } from "#shared/schema.ts";

/** Parts of the file that are in the bucket, and what the next one has to know of them. */
const Parts = z.object({
  upload: z.string(),
  tags: z.array(z.string()),
  /** Of the text so far: what the end of a gzip file tells. */
  crc: z.number(),
  textBytes: z.number(),
  fileBytes: z.int(),
});
export type Parts = z.infer<typeof Parts>;

export const StoredExport = z.object({
  type: z.literal("export"),
  id: Id,
  companyId: Id,
  state: z.enum(["running", "completed", "failed"]),
  /** As they were sent. */
  filter: z.record(z.string(), z.string()),
  createdBy: Id,
  /** Whose prospects it holds, as the rule of visibility says; null: all of the company's. */
  assignee: z.nullable(Id),
  /** Null until it is known which prospects it holds. */
  total: z.nullable(z.int()),
  processed: z.int(),
  /** How many have been read, as was last told: mostly some that are in no part of the file yet. */
  read: z.optional(z.int()),
  parts: z.nullable(Parts),
  failure: z.optional(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** Milliseconds since the epoch at which the run that has it is dead. */
  runsUntil: z.int(),
  /** Runs that have begun since there was progress. */
  runs: z.int(),
});
export type StoredExport = z.infer<typeof StoredExport>;
