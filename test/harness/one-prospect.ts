/** Applies filters and searches to one prospect and its notes, for tests of the filters and of the search. */
import type { Caller } from "#shared/auth/caller.ts";
import { searchable } from "#shared/caseless.ts";
import { passes } from "#shared/company-index/criteria.ts";
import * as limits from "#shared/limits.ts";
import { criteriaOf, type ProspectFilter } from "#shared/prospects/filter.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

export function prospectPredicate(filter: ProspectFilter, caller: Caller, dictionary: Dictionary) {
  const criteria = criteriaOf(filter, caller, dictionary);
  return (prospect: StoredProspect, notes: readonly string[]): boolean =>
    passes(criteria, indexRow(prospect), (word) =>
      notes.some((note) => searchable(note, limits.note).includes(criteria.words[word]?.text ?? "")),
    );
}
