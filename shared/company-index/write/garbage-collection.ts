/** Deletes the runs of a search index that newer runs have replaced, when no reader can use them any more. */
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Run, type RunManifests, runOf } from "#shared/company-index/manifest.ts";
import { piecesOf, removePieces } from "#shared/company-index/pieces.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** Milliseconds for which replaced runs stay for readers. Every request takes less than half of this time. */
export const RETIRED_MS = 60_000;

/** Age in milliseconds. A manifest without a run in the index remains when a process stops before it updates the head row. */
const ORPHAN_MS = 24 * 3_600_000;

/** Returns the time of replacement by run, in milliseconds since 1970. Includes runs that were replaced through other runs. */
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
 * The caller must have read `manifest` and `runManifests` together and then changed the head row, so that no process can store a list with
 * a deleted run. Run manifests are deleted last, so that an interrupted garbage collection can be repeated.
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

/** Without a readable run manifest, the ids of the run's data are unknown, so the data remains in the table. */
function readable(read: () => Run): Run[] {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof IndexUnreadable) return [];
    throw error;
  }
}
