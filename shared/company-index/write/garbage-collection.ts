/**
 * Removes replaced runs when no reader can use them any more. Each run manifest contains the time of publication and the ids of the
 * replaced runs, so that the head does not need to list replaced runs.
 */
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Run, type RunManifests, runOf } from "#shared/company-index/manifest.ts";
import { piecesOf, removePieces } from "#shared/company-index/pieces.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/**
 * Replaced runs are kept for this time, because readers that started before the replacement still use them. No request takes half of this
 * time.
 */
export const RETIRED_MS = 60_000;

/** An unpublished run manifest of at least this age belongs to a process that was killed. */
const ORPHAN_MS = 24 * 3_600_000;

/** Returns the runs that the current runs replaced, directly or through other replaced runs, with the time when each was replaced. */
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
 * Removes the runs that are no longer needed. `manifest` and `runManifests` must come from the same instant, and the caller must have moved
 * the head since then. Another process that read the head at that instant therefore fails to move the head, so that no new manifest can
 * contain the removed runs. The run manifests are removed last, so that a later garbage collection repeats one that was killed.
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

/** Returns no run if the run manifest is unreadable, because the ids of its pieces are unknown; the pieces stay in the table. */
function readable(read: () => Run): Run[] {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof IndexUnreadable) return [];
    throw error;
  }
}
