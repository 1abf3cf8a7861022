/** Finds the prospects that match the filters of a request and that its caller may see. */
import type { Caller } from "#shared/auth/caller.ts";
import { polygonArea } from "#shared/company-index/areas.ts";
import type { Area, Criteria } from "#shared/company-index/criteria.ts";
import type { Found } from "#shared/company-index/read/company-index.ts";
import type { ReadContext } from "#shared/context.ts";
import type { Ring } from "#shared/geometry/ring.ts";
import { criteriaOf, type ProspectFilter, searching } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { territoryArea } from "#shared/reference/territory-areas.ts";

/** The filters of a list, and two filters that a query cannot contain. */
export interface ShapedFilter extends ProspectFilter {
  readonly polygon?: Ring | undefined;
  /** Further areas. A prospect must lie in all of them, and also in the polygon and the territory. */
  readonly areas?: readonly Area[] | undefined;
}

/**
 * Finds the prospects that match the filter and that the caller may see. A criterion in `more` replaces the same criterion of the filter.
 */
export function findFiltered(
  context: ReadContext,
  caller: Caller,
  filter: ShapedFilter,
  more: Partial<Criteria> = {},
): Promise<Found<Dictionary>> {
  const { companyId } = caller;
  const { territoryId, polygon, areas = [] } = filter;
  const drawn = polygon === undefined ? [] : [polygonArea(polygon)];
  return findProspects(
    context,
    companyId,
    async (names, head) => {
      const territories = territoryId === undefined ? [] : [await territoryArea(context, companyId, territoryId, head)];
      return { ...criteriaOf(filter, caller, names, [...areas, ...drawn, ...territories]), ...more };
    },
    searching(filter),
  );
}
