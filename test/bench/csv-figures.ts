/** What a process that imports or exports a company tells of it. Times are of the wall, in milliseconds. */
import * as z from "zod/mini";

/** Blocks of ids, both ends included. */
export const Blocks = z.object({ from: z.int(), to: z.int() });
export type Blocks = z.infer<typeof Blocks>;

const memory = {
  /** V8's. */
  peakHeapBytes: z.number(),
  /** Of the whole process, resident. */
  peakBytes: z.number(),
};

export const Imported = z.object({
  ...memory,
  ms: z.number(),
  writeUnits: z.number(),
  imported: z.int(),
  /** Where the prospects are. */
  blocks: Blocks,
});
export type Imported = z.infer<typeof Imported>;

export const Exported = z.object({
  ...memory,
  /** As a streamed answer. */
  ms: z.number(),
  readUnits: z.number(),
  /** As they stand in the table. */
  rowBytes: z.number(),
  /** Into a file of the bucket. */
  jobMs: z.number(),
  processed: z.int(),
});
export type Exported = z.infer<typeof Exported>;

/** All turns together: ours, and as much work by bare calls of the SDK. */
export const Turns = z.object({
  importMs: z.number(),
  bareWriteMs: z.number(),
  exportMs: z.number(),
  bareReadMs: z.number(),
});
export type Turns = z.infer<typeof Turns>;
