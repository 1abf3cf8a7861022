/**
 * Stores copies of changed records beside the change log, where devices read them. A flush finds the copies in the unflushed entries (the
 * rows with recent changes).
 */
import { type Change, chunkExpiresAt, type Logged } from "#shared/company-index/change-log.ts";
import { type AttachedChange, EntryCopies } from "#shared/company-index/copies/entries.ts";
import { type AttachedCopy, copyItems } from "#shared/company-index/copies/rows.ts";
import type { Unflushed } from "#shared/company-index/delta.ts";
import { newPieceId } from "#shared/company-index/pieces.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";

/**
 * Stores the copies for the next chunk of the change log, whose version follows that of the head row. If a record has several entries, only
 * the newest one is used. Returns where the copies are, and the changes for the chunk, which say which records have no copy. If the flush
 * fails later, the stored rows remain until they expire.
 */
export async function storeCopies(
  { table, clock }: IndexContext,
  companyId: number,
  { head, changes, ...unflushed }: Pick<Unflushed, "head" | "entries" | "changes" | "attached">,
): Promise<Pick<Logged, "changes" | "copies">> {
  const copies = new EntryCopies(unflushed);
  const prospects = copies.prospects();
  const newest = new Map<number, AttachedChange>();
  for (const change of changes.filter(isOfAttached))
    if ((newest.get(change.id)?.version ?? 0) < change.version) newest.set(change.id, change);
  const attached = new Map([...newest].flatMap(([id, change]) => pairOf(id, copies.attached(change))));
  if (prospects.length + attached.size === 0) return { changes };
  const place = { version: head.version + 1, id: newPieceId() };
  const stored = { prospects, attached: [...attached.values()] };
  const { items, copies: rows } = copyItems(companyId, place, stored, chunkExpiresAt(clock.now()));
  await table.batchPut(items);
  const copied = new Set([...prospects.map(({ id }) => id), ...attached.keys()]);
  const lacksCopy = (change: Change): boolean =>
    (change.kind === "prospect" || isOfAttached(change)) && !copied.has(change.id);
  return {
    changes: changes.map((change) => (lacksCopy(change) ? { ...change, lacksCopy: true } : change)),
    copies: rows,
  };
}

const pairOf = (id: number, copy: AttachedCopy | undefined) => (copy === undefined ? [] : [[id, copy] as const]);

const isOfAttached = (change: Change): change is AttachedChange =>
  change.kind === "note" || change.kind === "appointment";
