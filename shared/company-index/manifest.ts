/**
 * The manifest: the runs and segments that make up a company's index at one version of it. It stands in parts: the head lists
 * runs by their ids, and each run has a sheet, written once, that says of which segments it consists.
 */
import * as z from "zod/mini";
import { compress, decompress, IndexUnreadable } from "#shared/company-index/compress.ts";
import { Zone } from "#shared/company-index/zone.ts";

/** Of the head, the sheets and the pieces that they lead to. Whatever is written in another way has another number. */
export const INDEX_FORMAT = 1;

/** Throws IndexUnreadable: what a later version of the service has stored must not be taken for something else. */
export function checkFormat(label: string, format: number): void {
  if (format === INDEX_FORMAT) return;
  throw new IndexUnreadable(`${label} has format ${format}, and only format ${INDEX_FORMAT} is known here`);
}

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

const Content = z.object({
  /** Rows of its segments, dead ones included. */
  rows: z.int(),
  overrides: Parts,
  looseNotes: Parts,
  segments: z.array(SegmentEntry),
});

export interface Run extends z.infer<typeof Content> {
  readonly id: string;
  /** Overrides that are few: they stand in the sheet and take no part of their own. */
  readonly fewOverrides?: Uint8Array | undefined;
}

/** Oldest first: a run's place is its age. */
export interface Manifest {
  readonly runs: readonly Run[];
}

/** What stands in the table for a run, beside its pieces. */
export interface Sheet {
  readonly runId: string;
  readonly format: number;
  /** When the run took the place of others, in milliseconds since the epoch. */
  readonly at: number;
  /** Ids of the runs whose place it took. */
  readonly replaced: readonly string[];
  readonly bytes: Uint8Array;
  readonly fewOverrides: Uint8Array | undefined;
}

export function sheetOf(run: Run, at: number, replaced: readonly string[]): Sheet {
  const { id, rows, overrides, looseNotes, segments, fewOverrides } = run;
  const bytes = compress(Buffer.from(JSON.stringify({ rows, overrides, looseNotes, segments })));
  return { runId: id, format: INDEX_FORMAT, at, replaced, bytes, fewOverrides };
}

/** Throws IndexUnreadable where it is damaged, or of a format that is not known. */
export function runOf(companyId: number, { runId, format, bytes, fewOverrides }: Sheet): Run {
  const label = `the sheet of run ${runId} of company ${companyId}`;
  checkFormat(label, format);
  const content = decompress(label, bytes, (json) => Content.parse(JSON.parse(Buffer.from(json).toString())));
  return { id: runId, ...content, fewOverrides };
}
