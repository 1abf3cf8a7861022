/** Map pins: every prospect with coordinates that passes the filters, as little of each as a map needs. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { type ProspectFilter, prospectPredicate } from "#shared/prospects/filter.ts";
import { matching, readAllProspects } from "#shared/prospects/plain-reading.ts";
import { newestFirst } from "#shared/prospects/present.ts";
import { HexColor, Id, named } from "#shared/schema.ts";
import { DEFAULT_COLOR } from "#shared/statuses/schema.ts";
import type { World } from "#shared/world.ts";

export const MapPin = named(
  "MapPin",
  z.object({ id: Id, lat: z.number(), lng: z.number(), statusColor: HexColor }),
  "A prospect on the map. Without a status its colour is `#9CA3AF`.",
);
export type MapPin = z.infer<typeof MapPin>;

/** Newest first. The company is read before the first pin; no number of pins is too large. */
export async function mapPins(world: World, caller: Caller, filter: ProspectFilter): Promise<Iterable<MapPin>> {
  const [company, dictionary] = await Promise.all([
    readAllProspects(world.table, caller.companyId),
    loadDictionary(world.table, caller.companyId),
  ]);
  const colorOf = (statusId: number | null): string =>
    (statusId === null ? undefined : dictionary.statuses.get(statusId)?.color) ?? DEFAULT_COLOR;
  const prospects = matching(company, prospectPredicate(filter, caller, dictionary)).sort(newestFirst);
  function* pins() {
    for (const { id, lat, lng, statusId } of prospects) {
      if (lat !== null && lng !== null) yield { id, lat, lng, statusColor: colorOf(statusId) };
    }
  }
  return pins();
}
