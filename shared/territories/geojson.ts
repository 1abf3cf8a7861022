/** Converts territories to GeoJSON (RFC 7946). */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { doubleArea, isClosed } from "#shared/geometry/clip.ts";
import { cutAtMeridian } from "#shared/geometry/meridian.ts";
import type { Polygon } from "#shared/reference/polygon.ts";
import { named } from "#shared/schema.ts";
import { Territory } from "#shared/territories/territories.ts";

/** Minimum number of positions of a closed ring, whose last position repeats the first one. */
const RING_POSITIONS = 4;

const TerritoryGeometry = named(
  "TerritoryGeometry",
  z.object({
    type: z.enum(["Polygon", "MultiPolygon"]),
    /** The schema is no union of a Polygon and a MultiPolygon, because many generators of clients cannot read one. */
    coordinates: z.array(z.array(z.array(z.unknown()))),
  }),
  "A GeoJSON polygon with one ring. If the territory crosses the 180th meridian, a MultiPolygon that is cut there.",
);

const { id, polygon: _polygon, ...rest } = Territory.shape;
const TerritoryProperties = named(
  "TerritoryProperties",
  z.object(rest),
  "The fields of a territory, without its id and its polygon.",
);

export const TerritoryFeature = named(
  "TerritoryFeature",
  z.object({
    type: z.literal("Feature"),
    id,
    geometry: z.nullable(TerritoryGeometry),
    properties: TerritoryProperties,
  }),
  "A territory as a GeoJSON feature.",
);
type TerritoryFeature = z.infer<typeof TerritoryFeature>;

export const TerritoryCollection = named(
  "TerritoryCollection",
  z.object({ type: z.literal("FeatureCollection"), features: z.array(TerritoryFeature) }),
  "Territories in GeoJSON (RFC 7946), newest first.",
);

/* @__PURE__ */ explain([TerritoryGeometry], () => ({
  fields: {
    coordinates:
      "For a Polygon, one closed ring of `[lng, lat]` positions, counter-clockwise. For a MultiPolygon, a list of polygons that each have one such ring.",
  },
}));
/* @__PURE__ */ explain([TerritoryFeature], () => ({ fields: { geometry: "Null if the territory has no polygon." } }));

export const featureOf = ({ id, polygon, ...properties }: Territory): TerritoryFeature => ({
  type: "Feature",
  id,
  geometry: geometryOf(polygon),
  properties,
});

function geometryOf(polygon: Polygon): TerritoryFeature["geometry"] {
  if (polygon.length === 0) return null;
  const [ring = [], ...more] = cutAtMeridian(polygon).map(exteriorRing);
  if (more.length === 0) return { type: "Polygon", coordinates: [ring] };
  return { type: "MultiPolygon", coordinates: [ring, ...more].map((part) => [part]) };
}

/** Returns a closed ring with at least four positions, counter-clockwise. */
export function exteriorRing(polygon: Polygon): [number, number][] {
  const ring = polygon.map(([lng, lat]): [number, number] => [lng, lat]);
  const [first] = ring;
  if (first === undefined) return ring;
  if (!isClosed(ring)) ring.push([...first]);
  while (ring.length < RING_POSITIONS) ring.push([...first]);
  // Uses coordinates relative to the first point, because rounding errors could otherwise exceed the area of a small ring.
  const near = ring.map(([lng, lat]): [number, number] => [lng - first[0], lat - first[1]]);
  return doubleArea(near) < 0 ? ring.reverse() : ring;
}
