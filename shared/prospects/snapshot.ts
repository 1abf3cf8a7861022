/** One moment of a company: its prospects in the index, and the names that belong to them. */

import { companyIndex, type HowToLook, type IndexMoment } from "#shared/company-index/company-index.ts";
import { IndexUnreadable } from "#shared/company-index/compress.ts";
import type { ApiContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary, recentDictionary } from "#shared/reference/recent-dictionary.ts";

export interface Moment extends Pick<IndexMoment, "find"> {
  readonly dictionary: Dictionary;
}

/**
 * `work` may be done again, at a later moment. Where the function is warm, one Query makes the moment. Throws unavailable where the
 * index is damaged: a part of a company is never shown as the whole.
 */
export function atMoment<T>(
  context: ApiContext,
  companyId: number,
  work: (moment: Moment) => Promise<T>,
  how?: HowToLook,
): Promise<T> {
  const recent = (): Promise<Dictionary> => recentDictionary(context, companyId);
  const index = companyIndex(context.table);
  const lookAt = async ({ dictionaryVersion, find }: IndexMoment, names: Dictionary): Promise<T> => {
    const dictionary = names.version < dictionaryVersion ? await freshDictionary(context, companyId) : names;
    return work({ dictionary, find });
  };
  const moment = index.at(companyId, recent, lookAt, how);
  return moment.catch((error: unknown) => {
    if (!(error instanceof IndexUnreadable)) throw error;
    throw new ApiError("unavailable", "The index of the company cannot be read.", { cause: error });
  });
}
