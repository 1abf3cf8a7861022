/**
 * Deletes runs of a search index that newer runs have replaced, when no reader can use them any more. A run is a sorted batch of rows. The
 * run manifest of each run lists the runs that it has replaced, so the head row of the index need not list them.
 */
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Run, type RunManifests, runOf } from "#shared/company-index/manifest.ts";
import { piecesOf, removePieces } from "#shared/company-index/pieces.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/**
 * Milliseconds for which replaced runs (sorted batches of rows) remain stored, because readers that began before the replacement still use
 * them. This time is long enough, because every request takes less than half of it.
 */
export const RETIRED_MS = 60_000;

/**
 * Age in milliseconds at which a run manifest (the row that describes a run) is deleted if its run was never in the index. Such a manifest
 * remains when a process stops between storing a run and updating the head row.
 */
const ORPHAN_MS = 24 * 3_600_000;

/**
 * Returns all runs (sorted batches of rows) that the current runs have replaced, directly or through other runs. Also returns the time of
 * each replacement, in milliseconds since 1970.
 */
export function retiredIn(manifest: readonly string[], runManifests: RunManifests): Map<string, number> {
  const retired = new Map<string, number>();
  const successors = [...manifest];
  for (let id = successors.pop(); id !== undefined; id = successors.pop()) {
    const runManifest = runManifests.get(id);
    for (const before of runManifest?.replaced ?? []) {
      if (runManifest === undefined || retired.has(before) || !runManifests.has(before)) continue;
      retired.set(before, runManifest.at);
      successors.push(before);
    }
  }
  return retired;
}

/**
 * Deletes the runs (sorted parts of the index) that are no longer needed. The caller must have read `manifest` and `runManifests` together,
 * and must have changed the head row after that. A process that still has the older head row can then no longer store a list with a deleted
 * run. Run manifests are deleted last, so that an interrupted garbage collection can be repeated.
 */
export async function collectGarbage(
  table: Table,
  companyId: number,
  manifest: readonly string[],
  runManifests: RunManifests,
  now: number,
): Promise<void> {
  const retired = retiredIn(manifest, runManifests);
  const state = new Set(manifest);
  const going = [...runManifests.values()].filter(({ runId, at }) => {
    const since = retired.get(runId);
    if (state.has(runId)) return false;
    return since === undefined ? at < now - ORPHAN_MS : since < now - RETIRED_MS;
  });
  if (going.length === 0) return;
  const runs = going.flatMap((runManifest) => readable(() => runOf(companyId, runManifest)));
  await removePieces(table, companyId, piecesOf({ runs }));
  await table.batchRemove(going.map(({ runId }) => keys.runManifest(companyId, runId)));
}

/**
 * Returns a list with the run, or an empty list if its run manifest cannot be read. Then the ids of the run's data are unknown, so the data
 * remains in the table.
 */
function readable(read: () => Run): Run[] {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof IndexUnreadable) return [];
    throw error;
  }
}
