/** Lists prospects: filters, exact total, order and page. */

import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { limits } from "#shared/limits.ts";
import { filterParameters, prospectPredicate } from "#shared/prospects/filter.ts";
import { matching, readAllProspects } from "#shared/prospects/plain-reading.ts";
import { newestFirst, presentProspect } from "#shared/prospects/present.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { named, PositiveInteger } from "#shared/schema.ts";
import type { World } from "#shared/world.ts";

export const ListQuery = z.object({
  ...filterParameters,
  page: z._default(PositiveInteger, 1),
  /** More than the maximum is cut to it; the answer says what was used. */
  pageSize: z.pipe(
    z._default(PositiveInteger, limits.pageSizeDefault),
    z.transform((size) => Math.min(size, limits.pageSizeMax)),
  ),
});
export type ListQuery = z.output<typeof ListQuery>;

export const ProspectPage = named(
  "ProspectPage",
  z.object({ items: z.array(Prospect), total: z.int(), page: z.int(), pageSize: z.int() }),
  "One page of prospects, newest first. `total` counts all matches.",
);
export type ProspectPage = z.infer<typeof ProspectPage>;

export async function listProspects(world: World, caller: Caller, query: ListQuery): Promise<ProspectPage> {
  const { page, pageSize, ...filter } = query;
  const [company, dictionary] = await Promise.all([
    readAllProspects(world.table, caller.companyId),
    loadDictionary(world.table, caller.companyId),
  ]);
  const matches = matching(company, prospectPredicate(filter, caller, dictionary)).sort(newestFirst);
  const shown = matches.slice((page - 1) * pageSize, page * pageSize);
  const now = world.clock.now();
  return {
    items: shown.map((row) => presentProspect(row, company.appointmentsOf.get(row.id) ?? [], dictionary, now)),
    total: matches.length,
    page,
    pageSize,
  };
}
