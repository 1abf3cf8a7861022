/** Finds a company's prospects in its index, with the names that were current at the same instant. */

import type { Criteria } from "#shared/company-index/criteria.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { companyIndex, type Found, type SnapshotOptions } from "#shared/company-index/read/company-index.ts";
import type { ApiContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary, recentDictionary } from "#shared/reference/dictionary.ts";

/**
 * One Query where the function is warm. Throws unavailable if the index is damaged: a part of a company is never shown as the
 * whole.
 */
export async function findProspects(
  context: ApiContext,
  companyId: number,
  criteriaOf: (names: Dictionary) => Criteria,
  options?: SnapshotOptions,
): Promise<Found<Dictionary>> {
  const names = {
    recent: () => recentDictionary(context, companyId),
    fresh: () => freshDictionary(context, companyId),
  };
  try {
    return await companyIndex(context.table).find(companyId, names, criteriaOf, options);
  } catch (error) {
    if (!(error instanceof IndexUnreadable)) throw error;
    throw new ApiError("unavailable", "The index of the company cannot be read.", { cause: error });
  }
}
