/** One moment of a company: its prospects in the index, and the names that belong to them. */
import type { Dictionary } from "#shared/companies/dictionary.ts";
import { freshDictionary, recentDictionary } from "#shared/companies/recent-dictionary.ts";
import { companyIndex, type IndexMoment } from "#shared/company-index/company-index.ts";
import type { World } from "#shared/world.ts";

export interface Moment extends Pick<IndexMoment, "find"> {
  readonly dictionary: Dictionary;
}

/** `work` may be done again, at a later moment. Where the function is warm, one Query makes the moment. */
export function atMoment<T>(world: World, companyId: number, work: (moment: Moment) => Promise<T>): Promise<T> {
  const recent = (): Promise<Dictionary> => recentDictionary(world, companyId);
  return companyIndex(world.table).at(companyId, recent, async ({ dictionaryVersion, find }, names) => {
    const dictionary = names.version < dictionaryVersion ? await freshDictionary(world, companyId) : names;
    return work({ dictionary, find });
  });
}
