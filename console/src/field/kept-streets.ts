/**
 * Keeps the street map of the user's territories on this device, so that the field mode has streets without a connection. The service
 * worker (console/service-worker.js) answers requests for the map with these files.
 */
import { useQuery } from "@tanstack/react-query";
import type { Territory } from "canvassing-client/api";
import { MercatorCoordinate, type StyleSpecification } from "maplibre-gl";
import { useConfig, useMe } from "../api/reference.ts";
import { type Bounds, boundsOf } from "../map/features.ts";
import { schemeOf } from "../shell/theme.ts";
import { STREETS_CACHE, useCopy } from "./phone.ts";

/** The zooms of the kept tiles. A map draws all larger zooms from the tiles of zoom 14, because providers have no tiles above it. */
const ZOOMS = [10, 11, 12, 13, 14];
const MOST_TILES = 1_500;
export const MOST_STREETS_BYTES = 50_000_000;
const AT_ONCE = 6;
const DAY_MS = 86_400_000;

interface TileSource {
  /** The URL of a tile, with `{z}`, `{x}` and `{y}`. */
  readonly template: string;
  readonly maxzoom: number;
}

export interface KeptStreets {
  readonly tiles: number;
  readonly bytes: number;
  /** True if the territories have more tiles than the device keeps. */
  readonly isCut: boolean;
}

/** Stores the street map after a download of the user's doors, at most once a day. Returns undefined until the map is stored. */
export function useKeptStreets(): KeptStreets | undefined {
  const config = useConfig().data;
  const url = config?.basemap?.[schemeOf()];
  const id = useMe().data?.user.id;
  const { territories, outcome } = useCopy();
  const mine = territories.filter(({ assignedToUserId }) => assignedToUserId === id);
  return useQuery({
    queryKey: ["kept streets", url, mine.map((territory) => [territory.id, territory.updatedAt])],
    queryFn: () => keepStreets(url ?? "", mine),
    enabled: config?.offline === true && url !== undefined && mine.length > 0 && outcome === "synced",
    staleTime: DAY_MS,
  }).data;
}

async function keepStreets(styleUrl: string, territories: readonly Territory[]): Promise<KeptStreets> {
  const cache = await caches.open(STREETS_CACHE);
  const style: StyleSpecification = await (await kept(cache, styleUrl, true)).json();
  const needed = new Set([styleUrl]);
  const sources: TileSource[] = [];
  for (const source of Object.values(style.sources)) {
    if (source.type !== "vector" && source.type !== "raster") continue;
    if (source.url !== undefined) needed.add(source.url);
    const { tiles = [], maxzoom = 22 }: { tiles?: string[]; maxzoom?: number } =
      source.url === undefined ? source : await (await kept(cache, source.url, true)).json();
    for (const template of tiles.slice(0, 1)) sources.push({ template, maxzoom });
  }
  const boxes = territories
    .map(({ polygon }) => boundsOf(polygon.map(([lng = 0, lat = 0]) => [lng, lat])))
    .filter((box) => box !== undefined);
  const all = new Set<string>();
  for (const url of tilesOf(boxes, sources)) if (all.add(url).size > MOST_TILES) break;
  const urls = [...all].slice(0, MOST_TILES);
  let [tiles, bytes] = [0, 0];
  for (let from = 0; from < urls.length && bytes < MOST_STREETS_BYTES; from += AT_ONCE) {
    const part = urls.slice(from, from + AT_ONCE);
    const sizes = await Promise.all(part.map(async (url) => (await (await kept(cache, url, false)).blob()).size));
    for (const url of part) needed.add(url);
    tiles += part.length;
    bytes += sizes.reduce((sum, size) => sum + size, 0);
  }
  for (const request of await cache.keys()) if (!needed.has(request.url)) await cache.delete(request);
  return { tiles, bytes, isCut: tiles < all.size };
}

/** Returns the file with this URL from the cache. First loads it into the cache if it is missing there or may have changed. */
async function kept(cache: Cache, url: string, mayChange: boolean): Promise<Response> {
  const found = mayChange ? undefined : await cache.match(url);
  if (found !== undefined) return found;
  const response = await fetch(url);
  // 404 is no failure, because some providers have no tile where there is nothing to draw.
  if (!response.ok && response.status !== 404) throw new Error(`${url}: ${response.status}`);
  await cache.put(url, response.clone());
  return response;
}

/** Yields the URLs of the tiles in the boxes. Small zooms come first: their tiles cover the most, and the number of tiles is limited. */
function* tilesOf(boxes: readonly Bounds[], sources: readonly TileSource[]): Generator<string> {
  for (const z of ZOOMS) {
    for (const { template } of sources.filter(({ maxzoom }) => z <= maxzoom)) {
      for (const [west, south, east, north] of boxes) {
        const [from, to] = [MercatorCoordinate.fromLngLat([west, north]), MercatorCoordinate.fromLngLat([east, south])];
        const tile = (part: number): number => Math.floor(part * 2 ** z);
        for (let x = tile(from.x); x <= tile(to.x); x++) {
          for (let y = tile(from.y); y <= tile(to.y); y++) {
            yield template.replace("{z}", `${z}`).replace("{x}", `${x}`).replace("{y}", `${y}`);
          }
        }
      }
    }
  }
}
