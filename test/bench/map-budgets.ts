/** Measures the map in a warm function: tiles, clusters, and the list of the prospects in a territory (budget 15 of docs/benchmarks.md). */
import { buffer } from "node:stream/consumers";
import type { ApiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { mercatorX, mercatorY } from "#shared/geometry/mercator.ts";
import { gzipped } from "#shared/http/gzip.ts";
import { ClusterQuery, prospectClusters } from "#shared/map/clusters.ts";
import { prospectTile, TILE_GZIP_LEVEL } from "#shared/map/prospect-tile.ts";
import { territoryTile } from "#shared/map/territory-tile.ts";
import type { Tile } from "#shared/map/tile.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { createTerritory } from "../harness/verbs.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { interleaved } from "./clock.ts";
import { cities, cityBbox } from "./places.ts";
import type { Stage } from "./stage.ts";

const RUNS = 15;
/** At this zoom, one tile contains nearly all of the largest city, which has 17 % of the prospects. */
const DENSE_ZOOM = 8;
const TILE_BYTES_MAX = 60_000;
const RING_POINTS = 5_000;

function tileOf({ lat, lng }: { readonly lat: number; readonly lng: number }, z: number): Tile {
  return { z, x: Math.floor(mercatorX(lng) * 2 ** z), y: Math.floor(mercatorY(lat) * 2 ** z) };
}

const [largest = { lat: 0, lng: 0 }] = cities;
/** Returns the tile of this zoom that contains the center of the largest city. */
export const largestCityTile = (zoom: number): Tile => tileOf(largest, zoom);
const denseTile = largestCityTile(DENSE_ZOOM);
const country = ClusterQuery.parse({ bbox: "-125,24,-66,50", zoom: "4" });

/** Returns a ring of `RING_POINTS` points along the edges of the box. A territory with this ring contains the same prospects as the box. */
function ringAround(bbox: string): [number, number][] {
  const [west = 0, south = 0, east = 0, north = 0] = bbox.split(",").map(Number);
  const side = RING_POINTS / 4;
  return Array.from({ length: RING_POINTS }, (_, i): [number, number] => {
    const along = (i % side) / side;
    if (i < side) return [west + along * (east - west), south];
    if (i < 2 * side) return [east, south + along * (north - south)];
    if (i < 3 * side) return [east - along * (east - west), north];
    return [west, north - along * (north - south)];
  });
}

const cityRing = ringAround(cityBbox);

/** Creates a territory. It adds an entry to the search index, so later reads of the index are a little larger. */
async function newTerritory({ context, caller }: Stage): Promise<number> {
  const input = { name: "T", polygon: cityRing, totalProperties: 0, assignedToUserId: null };
  return (await createTerritory(context, caller, input)).id;
}

export async function mapUnits(stage: Stage): Promise<Budget[]> {
  const { context, caller, company } = stage;
  const line = budgetsOf(sizeOf(company.count));
  const territoryId = await newTerritory(stage);
  const list = ListQuery.parse({ territoryId: String(territoryId) });
  await stage.fill(ListQuery.parse({ bbox: cityBbox }));
  const works = {
    tile: () => prospectTile(context, caller, denseTile, {}),
    "tile of a territory": () => prospectTile(context, caller, denseTile, { territoryId }),
    "tile of territories": () => territoryTile(context, caller, denseTile),
    clusters: () => prospectClusters(context, caller, country),
  };
  const budgets: Budget[] = [];
  for (const [name, work] of Object.entries(works)) {
    await work();
    const { usage } = await metered(async () => work());
    budgets.push(line(15, `warm ${name}, read units`, 1, usage.readUnits));
    budgets.push(line(15, `warm ${name}, rounds`, 1, usage.rounds));
  }
  await listProspects(context, caller, list);
  const { usage } = await metered(() => listProspects(context, caller, list));
  return [
    ...budgets,
    line(15, "warm list of a territory, rounds", 2, usage.rounds),
    line(15, "warm list of a territory, read units", 26, usage.readUnits),
    line(15, "tiles from zoom 4 to 18 around a city, largest, bytes gzipped", TILE_BYTES_MAX, await largestTile(stage)),
  ];
}

async function largestTile({ context, caller }: { context: ApiContext } & Pick<Stage, "caller">): Promise<number> {
  let bytes = 0;
  for (let zoom = 4; zoom <= 18; zoom++) {
    const tile = await prospectTile(context, caller, largestCityTile(zoom), {});
    if (tile !== undefined) bytes = Math.max(bytes, (await buffer(gzipped([tile], TILE_GZIP_LEVEL))).length);
  }
  return bytes;
}

export async function mapTimes(stage: Stage): Promise<Budget[]> {
  const { context, caller, company } = stage;
  const line = budgetsOf(sizeOf(company.count));
  const territoryId = await newTerritory(stage);
  const find = (filter: ProspectFilter) => findFiltered(context, caller, filter);
  const box = ProspectFilter.parse({ bbox: cityBbox });
  const works = {
    tile: () => prospectTile(context, caller, denseTile, {}),
    clusters: () => prospectClusters(context, caller, country),
    bbox: () => find(box),
    territory: () => find({ territoryId }),
  };
  for (const work of Object.values(works)) await work();
  const runs = await interleaved(RUNS, works);
  const of = (name: keyof typeof works): number => runs.get(name)?.cpuMs ?? Number.NaN;
  const inTile = { onMap: true, box: [-106.875, 38.822, -104.0625, 40.9799] } as const;
  const { total } = (await findFiltered(context, caller, {}, inTile)).matches;
  const about = sizeOf(Math.round(total / 1_000) * 1_000);
  // In smaller companies, the fixed cost of a request is a large part of both times, so their ratio has no limit.
  const most = company.count < 1_000_000 ? null : 2;
  const ratio = of("territory") / of("bbox");
  return [
    line(15, `warm tile of about ${about} prospects, processor time, ms (aim 40)`, null, of("tile")),
    line(15, "clusters of a country, processor time, ms (aim 60)", null, of("clusters")),
    line(15, "territory of 5 000 points / bbox of the same area, processor time", most, ratio),
  ];
}
