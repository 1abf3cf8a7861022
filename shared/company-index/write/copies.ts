/**
 * Stores copies of changed prospects beside the change log, where devices read them. A flush finds the copies in the unflushed entries (the
 * rows with recent changes).
 */
import { type Change, chunkExpiresAt, type Logged } from "#shared/company-index/change-log.ts";
import { copyIn, copyItems } from "#shared/company-index/copy.ts";
import type { Unflushed } from "#shared/company-index/delta.ts";
import { newPieceId } from "#shared/company-index/pieces.ts";
import { type IndexEntry, isTombstone } from "#shared/company-index/record.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";

/**
 * Stores the copies for the next chunk of the change log, whose version follows that of the head row. If a prospect has several entries,
 * only the newest one is used. Returns where the copies are, and the changes for the chunk, which say which prospects have no copy. If the
 * flush fails later, the stored rows remain until they expire.
 */
export async function storeCopies(
  { table, clock }: IndexContext,
  companyId: number,
  { head, entries, changes }: Pick<Unflushed, "head" | "entries" | "changes">,
): Promise<Pick<Logged, "changes" | "copies">> {
  const newest = new Map<number, IndexEntry>();
  for (const entry of entries) if ((newest.get(entry.id)?.version ?? 0) < entry.version) newest.set(entry.id, entry);
  const found = [...newest.values()].flatMap((entry) => (isTombstone(entry) ? [] : (copyIn(entry) ?? [])));
  if (found.length === 0) return { changes };
  const place = { version: head.version + 1, id: newPieceId() };
  const { items, copies } = copyItems(companyId, place, found, chunkExpiresAt(clock.now()));
  await table.batchPut(items);
  const copied = new Set(found.map(({ id }) => id));
  const lacksCopy = (change: Change): boolean => change.kind === "prospect" && !copied.has(change.id);
  return { changes: changes.map((change) => (lacksCopy(change) ? { ...change, lacksCopy: true } : change)), copies };
}
