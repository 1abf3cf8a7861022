/**
 * Removes replaced runs once no reader can still use them. Each run manifest says when its run was published and which runs it replaced, so
 * that the head does not need to list replaced runs.
 */
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Run, type RunManifests, runOf } from "#shared/company-index/manifest.ts";
import { piecesOf, removePieces } from "#shared/company-index/pieces.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** Replaced runs are kept this long for readers that started before. No request takes half as long. */
export const RETIRED_MS = 60_000;

/** An unpublished run manifest of this age belongs to a process that was killed. */
const ORPHAN_MS = 24 * 3_600_000;

/** The runs that the current runs replaced, directly or through other replaced runs, with the times of their replacement. */
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
 * `manifest` and `runManifests` must come from the same instant, and the caller must have moved the head since. Another process that moves
 * the head from that instant fails, so that no new manifest can contain the removed runs. The run manifests go last, so that a killed run
 * is repeated.
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

/** The pieces of an unreadable run manifest are unknown, and stay. */
function readable(read: () => Run): Run[] {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof IndexUnreadable) return [];
    throw error;
  }
}
