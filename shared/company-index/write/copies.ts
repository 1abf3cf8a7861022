/**
 * Stores copies of changed prospects beside the change log, where devices read them. A flush finds the copies in the unflushed entries (the
 * rows with recent changes).
 */
import { chunkExpiresAt } from "#shared/company-index/change-log.ts";
import { type CopyRows, copyIn, copyItems } from "#shared/company-index/copy.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import { newPieceId } from "#shared/company-index/pieces.ts";
import { type IndexEntry, isTombstone } from "#shared/company-index/record.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";

/**
 * Stores the copies for the next chunk of the change log, whose version follows that of `head`. Returns where the copies are, or undefined
 * if no entry contains one. If a prospect has several entries, only the newest one is used. If the flush fails later, the stored rows
 * remain until they expire.
 */
export async function storeCopies(
  { table, clock }: IndexContext,
  companyId: number,
  head: Head,
  entries: readonly IndexEntry[],
): Promise<CopyRows | undefined> {
  const newest = new Map<number, IndexEntry>();
  for (const entry of entries) if ((newest.get(entry.id)?.version ?? 0) < entry.version) newest.set(entry.id, entry);
  const found = [...newest.values()].flatMap((entry) => (isTombstone(entry) ? [] : (copyIn(entry) ?? [])));
  if (found.length === 0) return undefined;
  const place = { version: head.version + 1, id: newPieceId() };
  const { items, copies } = copyItems(companyId, place, found, chunkExpiresAt(clock.now()));
  await table.batchPut(items);
  return copies;
}
