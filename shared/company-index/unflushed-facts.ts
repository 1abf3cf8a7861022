/**
 * Reads the facts in the unflushed entries of a company's search index. It is a separate file, so that the bundles of searches do not
 * contain it.
 */
import { readUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import { type Fact, factsOfProspect } from "#shared/company-index/facts.ts";
import { isTombstone } from "#shared/company-index/record.ts";
import type { Reads } from "#shared/db/reads.ts";

/** The unflushed entries with their facts. */
export interface UnflushedFacts extends Unflushed {
  readonly facts: readonly Fact[];
}

export async function readUnflushedFacts(table: Reads, companyId: number): Promise<UnflushedFacts> {
  const facts: Fact[] = [];
  const unflushed = await readUnflushed(table, companyId, {
    prospect: (entry, item) => {
      if (!isTombstone(entry)) facts.push(...factsOfProspect(entry, item, item.appointment?.id));
    },
    note: ({ prospectId, noteId }, { by, createdAt, at = createdAt }) => {
      if (by === undefined || at === undefined) return;
      facts.push({ kind: "note", userId: by, at, statusId: null, prospectId, record: noteId });
    },
  });
  return { ...unflushed, facts };
}
