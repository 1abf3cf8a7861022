/** What a process that imports or exports a company tells of it. Times are of the wall, in milliseconds. */
import * as z from "zod/mini";

/** Blocks of ids, both ends included. */
export const Blocks = z.object({ from: z.int(), to: z.int() });
export type Blocks = z.infer<typeof Blocks>;

export const Imported = z.object({
  ms: z.number(),
  writeUnits: z.number(),
  imported: z.int(),
  /** Where the prospects are. */
  blocks: Blocks,
  peakHeapBytes: z.number(),
});
export type Imported = z.infer<typeof Imported>;

export const Exported = z.object({
  ms: z.number(),
  /** Of bare pages of the same rows. */
  bareMs: z.number(),
  readUnits: z.number(),
  rowBytes: z.number(),
  peakHeapBytes: z.number(),
});
export type Exported = z.infer<typeof Exported>;
