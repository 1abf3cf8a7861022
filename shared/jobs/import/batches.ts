/** Rows of a file in batches, as they are counted and as they are written: where a batch ends depends on the file alone. */

import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import type { ReadRow } from "#shared/jobs/import/read-file.ts";
import type { Counts, RowFault } from "#shared/jobs/import/schema.ts";
import type { Draft } from "#shared/prospects/csv/draft.ts";

/** Rows that are made and written at once, and the characters of their notes. */
const BATCH_ROWS = 2_048;
const BATCH_TEXT = 1_000_000;

export interface Batch {
  readonly drafts: readonly Draft[];
  readonly faults: readonly RowFault[];
  /** The last row of the file that is in it. */
  readonly row: number;
}

export async function* batchesOf(rows: AsyncIterable<ReadRow>): AsyncGenerator<Batch, void, undefined> {
  let drafts: Draft[] = [];
  let faults: RowFault[] = [];
  let text = 0;
  let last = 0;
  for await (const read of rows) {
    last = read.row;
    if ("fault" in read) faults.push({ row: read.row, message: read.fault });
    else {
      drafts.push(read.draft);
      text += read.draft.note?.length ?? 0;
    }
    if (drafts.length + faults.length < BATCH_ROWS && text < BATCH_TEXT) continue;
    yield { drafts, faults, row: last };
    [drafts, faults, text] = [[], [], 0];
  }
  if (drafts.length + faults.length > 0) yield { drafts, faults, row: last };
}

/**
 * With the batch. Addresses and places of notes stand together, one row of the table for each block of ids: a block belongs to one
 * batch, so that a batch which is written again writes the same.
 */
export function plus(done: Counts, { drafts }: Batch): Counts {
  const count = countsOf(drafts);
  return {
    prospect: done.prospect + count.prospect,
    address: done.address + wholeBlocks(count.address),
    note: done.note + wholeBlocks(count.note),
    change: done.change + count.change,
  };
}

const wholeBlocks = (ids: number): number => Math.ceil(ids / IDS_PER_PARTITION) * IDS_PER_PARTITION;

/** Ids that the rows need. */
export const countsOf = (drafts: readonly Draft[]): Counts => ({
  prospect: drafts.length,
  address: drafts.filter(({ address }) => address !== null).length,
  note: drafts.filter(({ note }) => note !== null).length,
  change: drafts.filter(({ statusId }) => statusId !== null).length,
});
