/** Changes the existing prospects that the rows of an import match. Several prospects are changed concurrently. */
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import type { ChangedRow } from "#shared/jobs/import/read-file.ts";
import type { RowFault } from "#shared/jobs/import/stored.ts";
import { changeByRow, type ImportOfChanges } from "#shared/prospects/csv/change.ts";

/** Number of concurrent transactions. A transaction takes some milliseconds, so an import changes about a thousand prospects per second. */
const PARALLEL = 12;
/** Number of rows between two calls of `onProgress`. */
const ROWS_TOGETHER = 96;

/**
 * Changes the prospects. Returns a fault for each row whose prospect can no longer be changed. When the function returns or throws, no
 * change is still running. A repeated call does not change a prospect a second time.
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
    await onProgress(at - faults.length);
    await mapConcurrently(rows.slice(at, at + ROWS_TOGETHER), PARALLEL, async ({ row, change }) => {
      const message = await changeByRow(context, caller, ofImport, change);
      if (message !== undefined) faults.push({ row, message });
    });
  }
  return faults.sort((a, b) => a.row - b.row);
}
