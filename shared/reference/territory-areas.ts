/** Caches the polygons and versions of territories. `territoriesVersion` in the head of the index shows whether they are current. */
import * as z from "zod/mini";
import { cachePerTable } from "#shared/cache.ts";
import { emptyArea, type PolygonArea, polygonArea } from "#shared/company-index/areas.ts";
import type { Area } from "#shared/company-index/criteria.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { unpackPolygon } from "#shared/reference/polygon.ts";

interface Prepared {
  readonly area: PolygonArea;
  /** The packed polygon of the area. */
  readonly polygon: Uint8Array;
}

/** Maximum size of the cache. A polygon of 5 000 points needs 200 KB, and up to 12 MB after tests of many points. */
const MAX_BYTES = 64_000_000;
/** A small polygon counts as this size, so that the cache has few entries, because it adds up the sizes of all entries at each use. */
const LEAST_BYTES = MAX_BYTES / 500;

const areas = cachePerTable<Prepared>({
  maxBytes: MAX_BYTES,
  bytesOf: ({ area }) => Math.max(LEAST_BYTES, area.bytes),
  grows: true,
});

const Locator = z.object({ createdAt: z.string() });
const WithPolygon = z.object({ id: z.int(), polygon: z.instanceof(Uint8Array) });
type WithPolygon = z.infer<typeof WithPolygon>;

export interface CompanyTerritories {
  readonly table: Reads;
  readonly companyId: number;
  /** Read the head before the territory. A cached area may then be newer than the version in the head, but never older. */
  readonly head: Pick<Head, "logId" | "territoriesVersion">;
}

const keyOf = ({ companyId, head }: CompanyTerritories, id: number): string => `${companyId} ${head.logId} ${id}`;

/** Returns the cached area if the polygon is the same, because it keeps the results of earlier tests and is faster than a new area. */
export function areaOf(company: CompanyTerritories, { id, polygon }: WithPolygon): PolygonArea {
  const cache = areas(company.table);
  const known = cache.get(keyOf(company, id))?.value;
  const isSame = known !== undefined && Buffer.compare(known.polygon, polygon) === 0;
  const prepared = isSame ? known : { area: polygonArea(unpackPolygon(polygon)), polygon };
  cache.set(keyOf(company, id), company.head.territoriesVersion, prepared);
  return prepared.area;
}

/** Returns the area of a territory, from the cache if it is current. The area of a missing territory is empty. */
export async function territoryArea(company: CompanyTerritories, id: number): Promise<Area> {
  const { table, companyId, head } = company;
  const known = areas(table).get(keyOf(company, id));
  if (known?.version === head.territoriesVersion) return known.value.area;
  const locator = await table.get(keys.territoryLocator(companyId, id));
  if (locator === undefined) return emptyArea;
  const item = await table.get(keys.territory(companyId, Locator.parse(locator).createdAt, id));
  return item === undefined ? emptyArea : areaOf(company, WithPolygon.parse(item));
}

const Versioned = z.object({ id: z.int(), version: z.int() });
type Versioned = z.infer<typeof Versioned>;

const versions = cachePerTable<readonly Versioned[]>({
  maxBytes: 20_000_000,
  bytesOf: (territories) => 1_000 + 100 * territories.length,
});

export async function territoryVersions(
  table: Reads,
  companyId: number,
  { logId, territoriesVersion }: Pick<Head, "logId" | "territoriesVersion">,
): Promise<readonly Versioned[]> {
  const key = `${companyId} ${logId}`;
  const known = versions(table).get(key);
  if (known?.version === territoriesVersion) return known.value;
  const territories = await Array.fromAsync(table.query(keys.territories(companyId)), (item) => Versioned.parse(item));
  versions(table).set(key, territoriesVersion, territories);
  return territories;
}
