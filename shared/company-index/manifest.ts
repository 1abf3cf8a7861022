/** The manifest: the runs and segments that make up a company's index at one version of it. */
import * as z from "zod/mini";
import { compress, decompress } from "#shared/company-index/compress.ts";
import { Zone } from "#shared/company-index/zone.ts";

/** How many items of the table a piece of the index takes; 0: there is nothing of it. */
const Parts = z.int();

export const SegmentEntry = z.object({
  id: z.string(),
  rows: z.int(),
  parts: z.object({ main: Parts, geo: Parts, text: Parts }),
  /** Stored size of all its parts. */
  bytes: z.int(),
  zone: Zone,
});
export type SegmentEntry = z.infer<typeof SegmentEntry>;

export const Run = z.object({
  id: z.string(),
  /** Rows of its segments, dead ones included. */
  rows: z.int(),
  overrides: Parts,
  looseNotes: Parts,
  segments: z.array(SegmentEntry),
});
export type Run = z.infer<typeof Run>;

/** Oldest first: a run's place is its age. */
export const Manifest = z.object({ runs: z.array(Run) });
export type Manifest = z.infer<typeof Manifest>;

export const emptyManifest: Manifest = { runs: [] };

export const encodeManifest = (manifest: Manifest): Uint8Array => compress(Buffer.from(JSON.stringify(manifest)));

export const decodeManifest = (label: string, compressed: Uint8Array): Manifest =>
  decompress(label, compressed, (bytes) => Manifest.parse(JSON.parse(Buffer.from(bytes).toString())));
