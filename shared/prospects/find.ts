/** Finds a company's prospects in its index. The dictionary is at least as new as the index, so that each id in the index has a name. */
import type { Caller } from "#shared/auth/caller.ts";
import { polygonArea } from "#shared/company-index/areas.ts";
import type { Area, Criteria } from "#shared/company-index/criteria.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import {
  type CriteriaOf,
  companyIndex,
  type FindOptions,
  type Found,
} from "#shared/company-index/read/company-index.ts";
import type { ReadContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import type { Ring } from "#shared/geometry/ring.ts";
import { criteriaOf, type ProspectFilter } from "#shared/prospects/filter.ts";
import { type Dictionary, dictionaryAtLeast, freshDictionary, recentDictionary } from "#shared/reference/dictionary.ts";
import { territoryArea } from "#shared/reference/territory-areas.ts";

/** Throws `unavailable` if the index is damaged: an incomplete list must not look complete. */
export async function findProspects(
  context: ReadContext,
  companyId: number,
  criteriaOf: CriteriaOf<Dictionary>,
  options?: FindOptions,
): Promise<Found<Dictionary>> {
  const names = {
    recent: () =>
      options?.unflushed === undefined
        ? recentDictionary(context, companyId)
        : dictionaryAtLeast(context, companyId, options.unflushed.head.dictionaryVersion),
    fresh: () => freshDictionary(context, companyId),
  };
  try {
    return await companyIndex(context.table).find(companyId, names, criteriaOf, options);
  } catch (error) {
    if (!(error instanceof IndexUnreadable)) throw error;
    throw new ApiError("unavailable", "The index of the company cannot be read.", { cause: error });
  }
}

/** The filters of a list, and three conditions that the query string of a request cannot contain. */
export interface ShapedFilter extends ProspectFilter {
  /** Replaces the values of the filter `sourceId`. This filter must still have a value, so that the index's source ids are read. */
  readonly sourceIds?: Criteria["sourceIds"];
  readonly polygon?: Ring | undefined;
  /** A prospect must lie in all these areas. */
  readonly areas?: readonly Area[] | undefined;
}

/** Finds only prospects that the caller may see. A criterion in `more` replaces that of the filter. */
export function findFiltered(
  context: ReadContext,
  caller: Caller,
  filter: ShapedFilter,
  more: Partial<Criteria> = {},
): Promise<Found<Dictionary>> {
  const { companyId } = caller;
  const { territoryId, polygon, areas = [], sourceIds, search = [], sourceId = [] } = filter;
  const drawn = polygon === undefined ? [] : [polygonArea(polygon)];
  return findProspects(
    context,
    companyId,
    async (names, head) => {
      const territories =
        territoryId === undefined ? [] : [await territoryArea({ table: context.table, companyId, head }, territoryId)];
      const criteria = criteriaOf(filter, caller, names, [...areas, ...drawn, ...territories]);
      return { ...criteria, sourceIds: sourceIds ?? criteria.sourceIds, ...more };
    },
    // Only filters for words and source ids need the long texts of the index, so other reads leave them out.
    { searches: search.length + sourceId.length > 0 },
  );
}
