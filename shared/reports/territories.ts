/** Adds up the activity of prospects by the territories in which the prospects are now. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { Area } from "#shared/company-index/criteria.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { areaOf } from "#shared/reference/territory-areas.ts";
import { Id, named } from "#shared/schema.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

export const TerritorySummary = named(
  "TerritorySummary",
  z.object({ id: Id, name: z.string() }),
  "A territory in a report.",
);

interface MappedProspect {
  readonly lat: number;
  readonly lng: number;
  readonly counts: readonly number[];
  isInside: boolean;
}

interface TerritoryCounts {
  readonly territory: z.infer<typeof TerritorySummary> | null;
  readonly counts: readonly number[];
}

/**
 * Returns the territories with activity, sorted by id. The last entry (null) counts prospects in no territory, deleted ones, and those that
 * the caller may not see. A prospect in several territories counts in each. A prospect on the boundary is inside.
 */
export async function byTerritory(
  context: ReadContext,
  caller: Caller,
  byProspect: ReadonlyMap<number, readonly number[]>,
): Promise<TerritoryCounts[]> {
  if (byProspect.size === 0) return [];
  const prospects = (await prospectsOnMap(context, caller, byProspect)).sort((a, b) => a.lat - b.lat);
  const found: TerritoryCounts[] = [];
  for await (const item of context.table.query(keys.territories(caller.companyId))) {
    const territory = StoredTerritory.parse(item);
    const { id, name } = territory;
    const counts = countsInside(areaOf({ table: context.table, companyId: caller.companyId }, territory), prospects);
    if (counts !== undefined) found.push({ territory: { id, name }, counts });
  }
  found.sort((a, b) => (a.territory?.id ?? 0) - (b.territory?.id ?? 0));
  const outside = new Map(byProspect);
  for (const { id, isInside } of prospects) if (isInside) outside.delete(id);
  const rest = sumOf(outside.values());
  return rest === undefined ? found : [...found, { territory: null, counts: rest }];
}

/** Returns the coordinates and counts of the prospects that are on the map and that the caller may see. */
async function prospectsOnMap(
  context: ReadContext,
  caller: Caller,
  byProspect: ReadonlyMap<number, readonly number[]>,
): Promise<(MappedProspect & { readonly id: number })[]> {
  const { matches } = await findFiltered(context, caller, {}, { onMap: true });
  const prospects: (MappedProspect & { readonly id: number })[] = [];
  const add = (id: number, lat = Number.NaN, lng = Number.NaN): void => {
    const counts = byProspect.get(id);
    if (counts !== undefined) prospects.push({ id, lat, lng, counts, isInside: false });
  };
  for (const { inView, rows } of matches.segments) {
    const { main, geo } = inView.segment;
    if (geo === undefined) throw new Error("the coordinates of a segment were not loaded");
    for (const row of rows) add(main.ids[row] ?? 0, geo.lat[row], geo.lng[row]);
  }
  for (const { id, lat, lng } of matches.unflushed) add(id, lat ?? undefined, lng ?? undefined);
  return prospects;
}

/** Marks the prospects inside the area. Undefined if there are none. `prospects` must be sorted by latitude. */
function countsInside(area: Area, prospects: readonly MappedProspect[]): readonly number[] | undefined {
  if (area.box === null) return undefined;
  const [, minLat, , maxLat] = area.box;
  const inside: (readonly number[])[] = [];
  for (let at = firstFrom(prospects, minLat); at < prospects.length; at++) {
    const prospect = prospects[at];
    if (prospect === undefined || prospect.lat > maxLat) break;
    if (!area.contains(prospect.lat, prospect.lng)) continue;
    prospect.isInside = true;
    inside.push(prospect.counts);
  }
  return sumOf(inside);
}

/** Returns the position of the first prospect whose latitude is `lat` or greater. */
function firstFrom(prospects: readonly MappedProspect[], lat: number): number {
  let [from, to] = [0, prospects.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((prospects[middle]?.lat ?? lat) < lat) from = middle + 1;
    else to = middle;
  }
  return from;
}

function sumOf(all: Iterable<readonly number[]>): readonly number[] | undefined {
  let sum: number[] | undefined;
  for (const counts of all) {
    sum ??= counts.map(() => 0);
    for (let kind = 0; kind < counts.length; kind++) sum[kind] = (sum[kind] ?? 0) + (counts[kind] ?? 0);
  }
  return sum;
}
