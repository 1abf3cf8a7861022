/** Changes the prospects that rows of an import match, several at the same time. */
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import type { ChangedRow } from "#shared/jobs/import/read-file.ts";
import type { RowFault } from "#shared/jobs/import/schema.ts";
import { changeByRow, type ImportOfChanges } from "#shared/prospects/csv/change.ts";

/** The number of transactions in flight. A transaction takes some milliseconds, so this changes about a thousand prospects a second. */
const PARALLEL = 12;
/** The number of rows between two calls of `onProgress`. */
const ROWS_TOGETHER = 96;

/**
 * Changes the prospects, and returns the faults of rows whose prospects could not be changed any more. No change is in flight when this
 * function ends. May be repeated: a prospect that the same import has changed stays as it is.
 */
export async function changeProspects(
  context: ApiContext,
  caller: Caller,
  ofImport: ImportOfChanges,
  rows: readonly ChangedRow[],
  onProgress: (changed: number) => Promise<void> = async () => undefined,
): Promise<RowFault[]> {
  const faults: RowFault[] = [];
  for (let at = 0; at < rows.length; at += ROWS_TOGETHER) {
    await onProgress(at);
    await mapConcurrently(rows.slice(at, at + ROWS_TOGETHER), PARALLEL, async ({ row, change }) => {
      const message = await changeByRow(context, caller, ofImport, change);
      if (message !== undefined) faults.push({ row, message });
    });
  }
  return faults.sort((a, b) => a.row - b.row);
}
