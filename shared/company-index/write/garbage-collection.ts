/**
 * The sweep: what a run has replaced is removed when no reader can be in the middle of it any more. The sheets tell: each says
 * since when its run holds and whose place it took, and so the head need not list what holds no more.
 */
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Run, type RunManifests, runOf } from "#shared/company-index/manifest.ts";
import { piecesOf, removePieces } from "#shared/company-index/pieces.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** What holds no more is kept this long for readers that began with it. No request runs half as long. */
export const RETIRED_MS = 60_000;

/** A sheet that never came to hold is left by a process that was killed. None that still runs is so old. */
const ORPHAN_MS = 24 * 3_600_000;

/** Runs with sheets that those of the manifest have replaced, and these in their turn; with the times at which they ceased to hold. */
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
 * `manifest` and `sheets` are of one moment, and the head has been moved by the caller since: whoever is about to move it from
 * that moment, too, will fail and not lead to what is removed here. The sheets go last, so that a sweep that was killed is repeated.
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

/** What an unreadable sheet leads to is not known any more, and stays. */
function readable(read: () => Run): Run[] {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof IndexUnreadable) return [];
    throw error;
  }
}
