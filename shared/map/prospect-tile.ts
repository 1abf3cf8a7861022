/** Vector tiles with a pin for each prospect, or with clusters if there are many. */
import { at, doubleAt, uint16At } from "#shared/at.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { boxArea } from "#shared/company-index/areas.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import type { ReadContext } from "#shared/context.ts";
import { fingerprint, unconditional, type Validator } from "#shared/http/etag.ts";
import { type Cell, cellsOf, type FilledCells, onlyStatusOf, View } from "#shared/map/cells.ts";
import { boxAround, contains, positionIn, type Tile } from "#shared/map/tile.ts";
import { type AttributeValue, Layer, metaLayer, vectorTile } from "#shared/map/vector-tile.ts";
import type { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { digestOf } from "#shared/prospects/list/multiset-digest.ts";
import { DEFAULT_COLOR } from "#shared/reference/schema.ts";

/** Maximum number of prospects in a tile that shows each of them as a pin. */
export const TILE_PINS_MAX = 5_000;
/** Number of cells of a tile in each direction. A cell has 32 pixels if the tile has 512. */
export const TILE_CELLS = 16;
/** Higher levels make a tile with many pins up to 5 % larger, because gzip then prefers longer repetitions that are far away. */
export const TILE_GZIP_LEVEL = 4;

/** Undefined if no match is in the tile. */
export async function prospectTile<Current = never>(
  context: ReadContext,
  caller: Caller,
  tile: Tile,
  { bbox, ...filter }: ProspectFilter,
  validator: Validator<Current> = unconditional,
): Promise<Uint8Array | Current | undefined> {
  const areas = bbox === undefined ? [] : [boxArea(bbox)];
  const { names, matches } = await findFiltered(context, caller, { ...filter, areas }, { box: boxAround(tile) });
  const place = [tile.z, tile.x, tile.y];
  const current = fingerprint("tile", caller.companyId, names.version, ...place, ...digestOf(matches));
  const notModified = validator.check(current, context.clock.now());
  if (notModified !== undefined) return notModified;
  validator.tag(current);
  return tileOf(matches, tile, names);
}

interface Names {
  readonly statuses: ReadonlyMap<number, { readonly value: string; readonly color: string }>;
}

/** Undefined if no prospect in the tile matches. `matches` must contain all matches in the tile. */
export function tileOf(
  matches: Pick<Matches, "segments" | "unflushed" | "total">,
  tile: Tile,
  names: Names,
): Uint8Array | undefined {
  if (matches.total > TILE_PINS_MAX) {
    const view = View.ofTile(tile, TILE_CELLS);
    const filled = cellsOf(matches, view);
    if (filled.total > TILE_PINS_MAX) return clusterTile(tile, view, filled, names);
  }
  return pinTile(tile, matches, names);
}

function pinTile(
  tile: Tile,
  { segments, unflushed }: Pick<Matches, "segments" | "unflushed">,
  names: Names,
): Uint8Array | undefined {
  const found: { readonly id: number; readonly lat: number; readonly lng: number; readonly shown: Shown }[] = [];
  const add = (id: number, lat: number, lng: number, shown: Shown): void => {
    if (contains(tile, lat, lng)) found.push({ id, lat, lng, shown });
  };
  for (const { inView, rows } of segments) {
    const { main, places } = inView.segment;
    const shown = main.statusId.values.map((id) => statusShown(id, names));
    for (const row of rows) {
      const status = at(shown, uint16At(main.statusId.codes, row));
      add(doubleAt(main.ids, row), doubleAt(places.lat, row), doubleAt(places.lng, row), status);
    }
  }
  for (const { id, lat, lng, statusId } of unflushed) {
    if (lat !== null && lng !== null) add(id, lat, lng, statusShown(statusId, names));
  }
  if (found.length === 0) return undefined;
  const pins = new Layer("pins");
  // Pins in the order of their ids make the tile smaller after gzip.
  for (const { id, lat, lng, shown } of found.sort((a, b) => a.id - b.id)) {
    pins.addPoint(positionIn(tile, lat, lng), { ...shown, id }, id);
  }
  return vectorTile([pins, metaLayer({ total: found.length })]);
}

/** A prospect without a status has no attribute `status`. */
interface Shown extends Readonly<Record<string, AttributeValue>> {
  readonly color: string;
}

function statusShown(id: number | null, { statuses }: Names): Shown {
  const status = id === null ? undefined : statuses.get(id);
  return status === undefined ? { color: DEFAULT_COLOR } : { status: status.value, color: status.color };
}

function clusterTile(tile: Tile, view: View, { cells, statusIds, total }: FilledCells, names: Names): Uint8Array {
  const [pins, clusters] = [new Layer("pins"), new Layer("clusters")];
  for (const [position, cell] of cells) {
    const { lat, lng } = cell.center;
    const place = positionIn(tile, lat, lng);
    if (cell.count === 1) {
      const shown = statusShown(statusIds[onlyStatusOf(cell)] ?? null, names);
      pins.addPoint(place, { id: cell.lastId, ...shown }, cell.lastId);
    } else clusters.addPoint(place, { key: view.keyOf(position), ...clusterAttributes(cell, statusIds, names) });
  }
  return vectorTile([pins, clusters, metaLayer({ total })]);
}

function clusterAttributes({ count, byStatus }: Cell, statusIds: readonly (number | null)[], names: Names) {
  const counts = byStatus.flatMap((number, i) => (number === 0 ? [] : [{ id: at(statusIds, i), number }]));
  const [most] = counts.toSorted((a, b) => b.number - a.number || (a.id ?? 0) - (b.id ?? 0));
  return {
    count,
    ...statusShown(most?.id ?? null, names),
    ...Object.fromEntries(counts.map(({ id, number }) => [`status_${id ?? "none"}`, number])),
  };
}
