/** Deletes the parts of a company index that newer parts have replaced, when no reader can use them any more. */
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Part, type PartManifests, partOf } from "#shared/company-index/manifest.ts";
import { piecesOf, removePieces } from "#shared/company-index/pieces.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** Milliseconds for which replaced parts stay for readers. Each request takes less than half of this time. */
export const RETIRED_MS = 60_000;

/** Milliseconds after which a part outside the index is deleted. Such a part remains if a process stops before it updates the head. */
const ORPHAN_MS = 24 * 3_600_000;

/** Returns the time at which each part was replaced, in milliseconds since 1970. Includes parts whose replacement was replaced later. */
export function retiredIn(manifest: readonly string[], partManifests: PartManifests): Map<string, number> {
  const retired = new Map<string, number>();
  const successors = [...manifest];
  for (let id = successors.pop(); id !== undefined; id = successors.pop()) {
    const partManifest = partManifests.get(id);
    for (const before of partManifest?.replaced ?? []) {
      if (partManifest === undefined || retired.has(before) || !partManifests.has(before)) continue;
      retired.set(before, partManifest.at);
      successors.push(before);
    }
  }
  return retired;
}

/**
 * Deletes replaced parts. The caller must have read `manifest` and `partManifests` together, and have changed the head since. No process
 * can then store a list of parts with a deleted one. Part manifests are deleted last, so that an interrupted garbage collection can be
 * repeated.
 */
export async function collectGarbage(
  table: Table,
  companyId: number,
  manifest: readonly string[],
  partManifests: PartManifests,
  now: number,
): Promise<void> {
  const retired = retiredIn(manifest, partManifests);
  const state = new Set(manifest);
  const going = [...partManifests.values()].filter(({ partId, at }) => {
    const since = retired.get(partId);
    if (state.has(partId)) return false;
    return since === undefined ? at < now - ORPHAN_MS : since < now - RETIRED_MS;
  });
  if (going.length === 0) return;
  const parts = going.flatMap((partManifest) => readable(() => partOf(companyId, partManifest)));
  await removePieces(table, companyId, piecesOf({ parts }));
  await table.batchRemove(going.map(({ partId }) => keys.partManifest(companyId, partId)));
}

/** Omits a part whose manifest is unreadable. The ids of its data are unknown, so the data stays in the table. */
function readable(read: () => Part): Part[] {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof IndexUnreadable) return [];
    throw error;
  }
}
