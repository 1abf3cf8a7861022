/** Whose some prospects are, by what a read of the whole index has found. */
import type { Matches } from "#shared/company-index/match.ts";

/** Those that are not deleted, with their assignees. `matches` are those of no filter at all. */
export function assigneesOf({ segments, unflushed }: Matches, ids: Iterable<number>): Map<number, number | null> {
  const wanted = new Set(ids);
  const found = new Map<number, number | null>();
  for (const { id, assignedToUserId } of unflushed) if (wanted.has(id)) found.set(id, assignedToUserId);
  for (const { inView } of segments) {
    const { values, codes } = inView.segment.main.assignedToUserId;
    for (const id of wanted) {
      const row = inView.segment.rowOf(id);
      if (row >= 0 && inView.dead?.[row] !== 1) found.set(id, values[codes[row] ?? 0] ?? null);
    }
  }
  return found;
}
