/**
 * The polygons of all territories of a company, for map tiles. A warm function caches them. A version in the head of the company index
 * shows whether they are current.
 */
import { type Head, readHead } from "#shared/company-index/manifest.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { type PlainBox, plainBoxOf } from "#shared/geometry/ring.ts";
import { unpackPolygon } from "#shared/reference/polygon.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

/** The polygon is packed, because the unpacked polygons of a company may not all fit into memory. */
export interface Shape extends Pick<StoredTerritory, "id" | "version" | "name" | "assignedToUserId" | "polygon"> {
  /** Its maxLng is greater than 180 if the polygon crosses the 180th meridian. */
  readonly box: PlainBox;
  readonly points: number;
}

interface Cached {
  readonly shapes: readonly Shape[];
  readonly version: string;
  readonly bytes: number;
}

/** A typical company has less than 100 KB of packed polygons, and the largest one about 60 MB. */
const CACHED_BYTES = 96_000_000;
/** Approximate bytes of a territory in memory without its polygon. */
const SHAPE_BYTES = 500;

const caches = new WeakMap<Reads, Map<number, Cached>>();

/**
 * Returns the territories with a polygon. Cached territories are used only if the version in the head row of the search index has not
 * changed since they were read.
 */
export async function territoryShapes(
  { table }: Pick<ReadContext, "table">,
  companyId: number,
): Promise<readonly Shape[]> {
  // The version is read before the territories. They may then be newer than the version, but never older.
  const version = versionOf(readHead(await table.get(keys.indexHead(companyId))));
  const cache = caches.get(table) ?? new Map<number, Cached>();
  caches.set(table, cache);
  const known = cache.get(companyId);
  if (known?.version === version) return known.shapes;
  cache.delete(companyId);
  const shapes: Shape[] = [];
  let bytes = 0;
  for await (const item of table.query(keys.territories(companyId))) {
    const shape = shapeOf(StoredTerritory.parse(item));
    if (shape.points === 0) continue;
    shapes.push(shape);
    bytes += shape.polygon.length + SHAPE_BYTES;
  }
  cache.set(companyId, { shapes, version, bytes });
  evict(cache);
  return shapes;
}

export function shapeOf({ id, version, name, assignedToUserId, polygon }: Omit<Shape, "box" | "points">): Shape {
  const ring = unpackPolygon(polygon);
  return { id, version, name, assignedToUserId, polygon, box: plainBoxOf(ring), points: ring.length };
}

const versionOf = ({ logId, territoriesVersion }: Head): string => `${logId}.${territoriesVersion}`;

function evict(cache: Map<number, Cached>): void {
  let bytes = [...cache.values()].reduce((sum, entry) => sum + entry.bytes, 0);
  for (const [companyId, entry] of cache) {
    if (bytes <= CACHED_BYTES) break;
    cache.delete(companyId);
    bytes -= entry.bytes;
  }
}
