/**
 * The polygons of all territories of a company, for map tiles. A warm function caches them. A version in the head of the company index
 * shows whether they are current.
 */
import { cachePerTable } from "#shared/cache.ts";
import { readHead } from "#shared/company-index/manifest.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { type PlainBox, plainBoxOf } from "#shared/geometry/ring.ts";
import { unpackPolygon } from "#shared/reference/polygon.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

/** The polygon is packed, because the unpacked polygons of a company may not all fit into memory. */
export interface Shape extends Pick<StoredTerritory, "id" | "version" | "name" | "assignedToUserId" | "polygon"> {
  /** Its maxLng is greater than 180 if the polygon crosses the 180th meridian. */
  readonly box: PlainBox;
  readonly points: number;
}

/** Approximate bytes of a territory in memory without its polygon. */
const SHAPE_BYTES = 500;

/** A typical company has less than 100 KB of packed polygons, and the largest one about 60 MB. */
const allShapes = cachePerTable<readonly Shape[]>({
  maxBytes: 96_000_000,
  bytesOf: (shapes) => shapes.reduce((sum, { polygon }) => sum + polygon.length + SHAPE_BYTES, SHAPE_BYTES),
});

/**
 * Returns the territories with a polygon. Cached territories are used only if the version in the head row of the search index has not
 * changed since they were read.
 */
export async function territoryShapes(
  { table }: Pick<ReadContext, "table">,
  companyId: number,
): Promise<readonly Shape[]> {
  // The version is read before the territories. They may then be newer than the version, but never older.
  const { logId, territoriesVersion } = readHead(await table.get(keys.indexHead(companyId)));
  const key = `${companyId} ${logId}`;
  const known = allShapes(table).get(key);
  if (known?.version === territoriesVersion) return known.value;
  const shapes: Shape[] = [];
  for await (const item of table.query(keys.territories(companyId))) {
    const shape = shapeOf(StoredTerritory.parse(item));
    if (shape.points > 0) shapes.push(shape);
  }
  allShapes(table).set(key, territoriesVersion, shapes);
  return shapes;
}

export function shapeOf({ id, version, name, assignedToUserId, polygon }: Omit<Shape, "box" | "points">): Shape {
  const ring = unpackPolygon(polygon);
  return { id, version, name, assignedToUserId, polygon, box: plainBoxOf(ring), points: ring.length };
}
