/**
 * The polygons of territories, for filters of prospects. A warm function caches them. A filter reads the head of the company index anyway,
 * whose `territoriesVersion` shows whether a cached polygon is current.
 */
import * as z from "zod/mini";
import { emptyArea, type PolygonArea, polygonArea } from "#shared/company-index/areas.ts";
import type { Area } from "#shared/company-index/criteria.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { unpackPolygon } from "#shared/reference/polygon.ts";

interface Cached {
  readonly area: PolygonArea;
  /** The packed polygon of the area. */
  readonly polygon: Uint8Array;
  /** The version of all territories of the company at which the area was current. */
  version?: string;
}

/** A polygon of 5 000 points needs from 200 KB to 12 MB, which depends on the points that were tested. */
const CACHED_BYTES = 64_000_000;
/** More are not kept, because each use adds up their bytes. */
const CACHED_POLYGONS = 500;

const caches = new WeakMap<Reads, Map<string, Cached>>();

const Locator = z.object({ createdAt: z.string() });
const WithPolygon = z.object({ id: z.int(), polygon: z.instanceof(Uint8Array) });
type WithPolygon = z.infer<typeof WithPolygon>;

interface Place {
  readonly table: Reads;
  readonly companyId: number;
}

const cacheOf = ({ table }: Place): Map<string, Cached> => {
  const cache = caches.get(table) ?? new Map<string, Cached>();
  caches.set(table, cache);
  return cache;
};

const keyIn = ({ companyId }: Place, id: number): string => `${companyId}#${id}`;

/** Returns the area of a territory that was read, as it was prepared for earlier requests. */
export const areaOf = (place: Place, territory: WithPolygon): PolygonArea => cached(place, territory).area;

function cached(place: Place, { id, polygon }: WithPolygon): Cached {
  const known = cacheOf(place).get(keyIn(place, id));
  const isSame = known !== undefined && Buffer.compare(known.polygon, polygon) === 0;
  const entry = isSame ? known : { area: polygonArea(unpackPolygon(polygon)), polygon };
  keep(place, id, entry);
  return entry;
}

/** The oldest areas are dropped first. Those in use have grown since, so all are added up. */
function keep(place: Place, id: number, entry: Cached): void {
  const cache = cacheOf(place);
  cache.delete(keyIn(place, id));
  cache.set(keyIn(place, id), entry);
  let bytes = 0;
  for (const { area } of cache.values()) bytes += area.bytes;
  for (const [key, { area }] of cache) {
    if ((bytes <= CACHED_BYTES && cache.size <= CACHED_POLYGONS) || cache.size === 1) break;
    cache.delete(key);
    bytes -= area.bytes;
  }
}

/**
 * Returns the area of a territory. If the company has no territory with this id, the area is empty.
 *
 * A cached polygon is used only if no polygon of the company has changed since it was read (`territoriesVersion` of the search index is the
 * same).
 */
export async function territoryArea(
  { table }: Pick<ReadContext, "table">,
  companyId: number,
  id: number,
  { logId, territoriesVersion }: Pick<Head, "logId" | "territoriesVersion">,
): Promise<Area> {
  const version = `${logId}.${territoriesVersion}`;
  const place = { table, companyId };
  const known = cacheOf(place).get(keyIn(place, id));
  if (known?.version === version) {
    keep(place, id, known);
    return known.area;
  }
  const locator = await table.get(keys.territoryLocator(companyId, id));
  const item =
    locator === undefined
      ? undefined
      : await table.get(keys.territory(companyId, Locator.parse(locator).createdAt, id));
  if (item === undefined) return emptyArea;
  const entry = cached(place, WithPolygon.parse(item));
  entry.version = version;
  return entry.area;
}
