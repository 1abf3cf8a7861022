/**
 * Compares the map's times with the times of PostGIS. PostGIS uses the rows that `compare` (in postgres.ts) has loaded into Postgres. It
 * makes vector tiles with `ST_AsMVT`, and finds the prospects in a territory with `ST_Within`.
 */
import { deepEqual } from "node:assert/strict";
import { pageOf } from "#shared/company-index/search/page.ts";
import { prospectTile, TILE_CELLS, TILE_PINS_MAX } from "#shared/map/prospect-tile.ts";
import { boxAround, EXTENT, type Tile } from "#shared/map/tile.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { sizeOf } from "./budget.ts";
import { medianOf } from "./clock.ts";
import { cityRing, largestCityTile, newTerritory } from "./map-budgets.ts";
import { type Comparison, RUNS, timeOf } from "./postgres.ts";
import type { Postgres } from "./postgres-server.ts";
import type { Stage } from "./stage.ts";

const COLUMNS = `
create extension if not exists postgis;
alter table prospect add geo geometry(Point, 4326), add flat geometry(Point, 3857);
update prospect set geo = ST_SetSRID(ST_MakePoint(place[0], place[1]), 4326);
update prospect set flat = ST_Transform(geo, 3857);
create index on prospect using gist (geo);
create index on prospect using gist (flat);
vacuum full analyze prospect;`;

/** Compares the territory and the tiles of the map. Returns an empty list if PostGIS is not installed. */
export async function compareMap(postgres: Postgres, stage: Stage): Promise<Comparison[]> {
  const [found] = await postgres.run("select count(*) from pg_available_extensions where name = 'postgis';");
  if (found !== "1") return [];
  await postgres.run(COLUMNS);
  const comparisons = [await compareTerritory(postgres, stage)];
  const zooms = { clusters: 8, pins: await firstZoomOfPins(stage) };
  for (const [kind, zoom] of Object.entries(zooms)) {
    const tile = largestCityTile(zoom);
    comparisons.push(await compareTile(postgres, stage, tile, `tile of zoom ${zoom}, ${kind}`));
  }
  return comparisons;
}

const countIn = async ({ context, caller }: Stage, tile: Tile): Promise<number> =>
  (await findFiltered(context, caller, {}, { box: boxAround(tile) })).matches.total;

/**
 * Returns the lowest zoom from 8 on at which the tile shows each prospect as a separate pin. Tiles with more than `TILE_PINS_MAX` prospects
 * show clusters.
 */
async function firstZoomOfPins(stage: Stage): Promise<number> {
  for (let zoom = 8; ; zoom++) if ((await countIn(stage, largestCityTile(zoom))) <= TILE_PINS_MAX) return zoom;
}

/**
 * Compares the service's tile with PostGIS's tile of the same prospects. PostGIS makes what the service makes: pins, or clusters in the
 * same grid if there are more than `TILE_PINS_MAX` prospects.
 */
async function compareTile(postgres: Postgres, stage: Stage, tile: Tile, name: string): Promise<Comparison> {
  const { context, caller, company } = stage;
  const total = await countIn(stage, tile);
  const envelope = `ST_TileEnvelope(${tile.z}, ${tile.x}, ${tile.y})`;
  // The check of the number of prospects uses `ST_Intersects`, because the operator `&&` also finds points up to a metre outside the tile:
  // it compares boxes in single precision.
  const counted = await postgres.run(`select count(*) from prospect where ST_Intersects(flat, ${envelope});`);
  deepEqual(Number(counted[0]), total, `${name} in PostGIS`);
  const geometry = (point: string): string => `ST_AsMVTGeom(${point}, ${envelope}, ${EXTENT}, 0) as geometry`;
  const pins = `select id, status_id, ${geometry("flat")} from prospect where flat && ${envelope}`;
  const cell = `ST_XMax(${envelope}) - ST_XMin(${envelope})) / ${TILE_CELLS}`;
  const clusters = `select count(*) as count, ${geometry("ST_Centroid(ST_Collect(flat))")} from prospect
    where flat && ${envelope} group by floor(ST_X(flat) / ((${cell})), floor(ST_Y(flat) / ((${cell}))`;
  const features = total > TILE_PINS_MAX ? clusters : pins;
  const sql = `select length(ST_AsMVT(features, 'prospects', ${EXTENT}, 'geometry')) from (${features}) as features;`;
  const { wallMs } = await medianOf(RUNS, () => prospectTile(context, caller, tile, {}));
  const postgresMs = await timeOf(postgres, sql.replaceAll("\n", " "));
  return { name, size: sizeOf(company.count), total, oursMs: wallMs, postgresMs };
}

async function compareTerritory(postgres: Postgres, stage: Stage): Promise<Comparison> {
  const { context, caller, company } = stage;
  const territoryId = await newTerritory(stage);
  const find = async () => (await findFiltered(context, caller, { territoryId })).matches;
  const ring = [...cityRing, ...cityRing.slice(0, 1)].map(([lng, lat]) => `${lng} ${lat}`).join();
  const where = `ST_Within(geo, ST_GeomFromText('POLYGON((${ring}))', 4326))`;
  const count = `select count(*) from prospect where ${where};`;
  const ids = `select id from prospect where ${where} order by created_at desc, id desc limit 50;`;
  const matches = await find();
  const found = (await postgres.run(`${count}\n${ids}`)).filter((line) => line !== "").map(Number);
  deepEqual(found, [matches.total, ...pageOf(matches, 0, 50).map(({ id }) => id)], "the territory in PostGIS");
  const { wallMs } = await medianOf(RUNS, async () => pageOf(await find(), 0, 50));
  const postgresMs = (await timeOf(postgres, count)) + (await timeOf(postgres, ids));
  const name = `territory of ${cityRing.length} points`;
  return { name, size: sizeOf(company.count), total: matches.total, oursMs: wallMs, postgresMs };
}
