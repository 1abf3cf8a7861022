/**
 * The polygons of territories, for filters of prospects. A warm function caches them. A filter reads the head of the company index anyway,
 * whose `territoriesVersion` shows whether a cached polygon is current.
 */
import * as z from "zod/mini";
import { emptyArea, polygonArea } from "#shared/company-index/areas.ts";
import type { Area } from "#shared/company-index/criteria.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { unpackPolygon } from "#shared/reference/polygon.ts";

interface Cached {
  readonly area: Area;
  readonly version: string;
}

/** A polygon of 5 000 points needs about 400 KB, so the cache needs at most 20 MB. */
const CACHED_POLYGONS = 50;

const caches = new WeakMap<Reads, Map<string, Cached>>();

const Locator = z.object({ createdAt: z.string() });
const WithPolygon = z.object({ polygon: z.instanceof(Uint8Array) });

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
  const cache = caches.get(table) ?? new Map<string, Cached>();
  caches.set(table, cache);
  const key = `${companyId}#${id}`;
  const known = cache.get(key);
  if (known?.version === version) return known.area;
  cache.delete(key);
  const locator = await table.get(keys.territoryLocator(companyId, id));
  const item =
    locator === undefined
      ? undefined
      : await table.get(keys.territory(companyId, Locator.parse(locator).createdAt, id));
  if (item === undefined) return emptyArea;
  const area = polygonArea(unpackPolygon(WithPolygon.parse(item).polygon));
  cache.set(key, { area, version });
  for (const oldest of cache.keys()) {
    if (cache.size <= CACHED_POLYGONS) break;
    cache.delete(oldest);
  }
  return area;
}
