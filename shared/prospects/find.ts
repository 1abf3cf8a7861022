/** Finds a company's prospects in its search index. It uses names of statuses, tags and users that are at least as new as the index. */

import { UpdateTimesMissing } from "#shared/company-index/criteria.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import {
  type CriteriaOf,
  companyIndex,
  type Found,
  type SnapshotOptions,
} from "#shared/company-index/read/company-index.ts";
import type { ReadContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary, recentDictionary } from "#shared/reference/dictionary.ts";

/**
 * Finds the prospects that pass the criteria. Throws `unavailable` if the index is damaged, because an incomplete list must not look
 * complete.
 */
export async function findProspects(
  context: ReadContext,
  companyId: number,
  criteriaOf: CriteriaOf<Dictionary>,
  options?: SnapshotOptions,
): Promise<Found<Dictionary>> {
  const names = {
    recent: () => recentDictionary(context, companyId),
    fresh: () => freshDictionary(context, companyId),
  };
  try {
    return await companyIndex(context.table).find(companyId, names, criteriaOf, options);
  } catch (error) {
    if (error instanceof UpdateTimesMissing) {
      const detail =
        "The search index of the company contains parts without times of changes, which an earlier release has written. `npm run index -- rebuild` adds them.";
      throw new ApiError("unavailable", detail, { showsDetail: true, cause: error });
    }
    if (!(error instanceof IndexUnreadable)) throw error;
    throw new ApiError("unavailable", "The index of the company cannot be read.", { cause: error });
  }
}
