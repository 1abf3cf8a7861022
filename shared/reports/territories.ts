/** Adds up the activity of prospects by the territories in which the prospects are now. */
import * as z from "zod/mini";
import { at, doubleAt } from "#shared/at.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { PolygonArea } from "#shared/company-index/areas.ts";
import { meetsBox, type Places, type Zone } from "#shared/company-index/criteria.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { isMarked } from "#shared/company-index/search/row-filter.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { requireTime } from "#shared/deadline.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { areaOf } from "#shared/reference/territory-areas.ts";
import { Id, named } from "#shared/schema.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

export const TerritorySummary = named(
  "TerritorySummary",
  z.object({ id: Id, name: z.string() }),
  "A territory in a report.",
);

interface ActiveProspect {
  readonly row: number;
  readonly id: number;
  readonly counts: readonly number[];
  isInside: boolean;
}

/** Prospects with activity and a position: those of one segment of the company index, or the unflushed ones. */
interface Block {
  readonly places: Places;
  readonly zone?: Pick<Zone, "box">;
  readonly prospects: readonly ActiveProspect[];
}

interface TerritoryCounts {
  readonly territory: z.infer<typeof TerritorySummary> | null;
  readonly counts: readonly number[];
}

/**
 * Returns the counts of each territory, sorted by id. The last entry (null) counts prospects in no territory, deleted ones, and those that
 * the caller does not see. A prospect in several territories counts in each.
 */
export async function byTerritory(
  context: ReadContext,
  caller: Caller,
  byProspect: ReadonlyMap<number, readonly number[]>,
): Promise<TerritoryCounts[]> {
  if (byProspect.size === 0) return [];
  const { head, matches } = await findFiltered(context, caller, {}, { onMap: true });
  const company = { table: context.table, companyId: caller.companyId, head };
  const blocks = blocksOf(matches, byProspect);
  const found: (TerritoryCounts & { readonly territory: object })[] = [];
  for await (const item of context.table.query(keys.territories(caller.companyId))) {
    requireTime();
    const territory = StoredTerritory.parse(item);
    const { id, name } = territory;
    const counts = countsInside(areaOf(company, territory), blocks);
    if (counts !== undefined) found.push({ territory: { id, name }, counts });
  }
  found.sort((a, b) => a.territory.id - b.territory.id);
  const outside = new Map(byProspect);
  for (const { prospects } of blocks) for (const { id, isInside } of prospects) if (isInside) outside.delete(id);
  const rest = sumOf(outside.values());
  return rest === undefined ? found : [...found, { territory: null, counts: rest }];
}

function blocksOf({ segments, unflushed }: Matches, byProspect: ReadonlyMap<number, readonly number[]>): Block[] {
  const active = (row: number, id: number): ActiveProspect | [] => {
    const counts = byProspect.get(id);
    return counts === undefined ? [] : { row, id, counts, isInside: false };
  };
  const blocks = segments.map(({ inView: { segment }, rows }): Block => {
    const { main, places, entry } = segment;
    const prospects = Array.from(rows, (row) => active(row, doubleAt(main.ids, row))).flat();
    return { places, zone: entry.zone, prospects };
  });
  const places = {
    lat: Float64Array.from(unflushed, ({ lat }) => lat ?? Number.NaN),
    lng: Float64Array.from(unflushed, ({ lng }) => lng ?? Number.NaN),
  };
  blocks.push({ places, prospects: unflushed.flatMap(({ id }, row) => active(row, id)) });
  return blocks.filter(({ prospects }) => prospects.length > 0);
}

/** Adds up the counts of the prospects inside a territory, and sets their `isInside`. Undefined if no prospect is inside. */
function countsInside({ box, rowsInside }: PolygonArea, blocks: readonly Block[]): readonly number[] | undefined {
  const found: (readonly number[])[] = [];
  for (const { places, zone, prospects } of blocks) {
    if (box === null || (zone !== undefined && !meetsBox(zone, box))) continue;
    const inside = rowsInside(places);
    for (const prospect of prospects) {
      if (!isMarked(inside, prospect.row)) continue;
      prospect.isInside = true;
      found.push(prospect.counts);
    }
  }
  return sumOf(found);
}

function sumOf(all: Iterable<readonly number[]>): readonly number[] | undefined {
  let sum: number[] | undefined;
  for (const counts of all) {
    sum ??= counts.map(() => 0);
    for (let kind = 0; kind < counts.length; kind++) sum[kind] = at(sum, kind) + at(counts, kind);
  }
  return sum;
}
