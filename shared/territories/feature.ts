/** Converts a feature of a GeoJSON file to a new territory. */
import * as z from "zod/mini";
import { joinedAtMeridian } from "#shared/geometry/meridian.ts";
import * as limits from "#shared/limits.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { RingInput } from "#shared/reference/polygon.ts";
import { hasVisible } from "#shared/schema.ts";
import { exteriorRing } from "#shared/territories/geojson.ts";
import { NewTerritory } from "#shared/territories/territories.ts";

/** Either the territory or the first fault of the feature. */
export interface ReadFeature {
  readonly input?: NewTerritory;
  readonly fault?: { readonly code: string; readonly detail: string };
}

const Feature = z.object({
  type: z.literal("Feature"),
  geometry: z.nullish(z.unknown()),
  properties: z.nullish(z.record(z.string(), z.unknown())),
  crs: z.optional(z.unknown()),
});
const Geometry = z.object({ type: z.string(), coordinates: z.unknown(), crs: z.optional(z.unknown()) });
const List = z.array(z.unknown());

class Invalid extends Error {
  readonly code: string;
  constructor(code: string, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** Returns a fault or the territories: one for each polygon of a MultiPolygon, or one if it is a polygon cut at the 180th meridian. */
export function readFeature(feature: unknown, { users }: Pick<Dictionary, "users">): [ReadFeature, ...ReadFeature[]] {
  try {
    const { geometry, properties, crs } = parsed(
      Feature,
      feature,
      "not_a_feature",
      `must be a GeoJSON feature, and is ${kindOf(feature)}`,
    );
    if (!isKnownCrs(crs)) throw new Invalid("validation_failed", `crs: ${foreignCrs(crs)}`);
    const { totalProperties, assignedToUserId } = properties ?? {};
    const given = {
      name: nameOf(properties ?? {}),
      totalProperties: totalProperties ?? undefined,
      assignedToUserId: assignedToUserId ?? null,
    };
    const [first, ...more] = (geometry == null ? [undefined] : ringsOf(geometry)).map((polygon, at, all) => {
      const place = all.length === 1 ? "geometry/coordinates/0" : `geometry/coordinates/${at}/0`;
      return parsed(NewTerritory, { ...given, polygon }, "validation_failed", undefined, place);
    });
    if (first === undefined) throw new Invalid("unsupported_geometry", "geometry: is a MultiPolygon without polygons");
    if (first.assignedToUserId !== null && users.get(first.assignedToUserId)?.isActive !== true) {
      throw new Invalid(
        "invalid_reference",
        "properties/assignedToUserId: does not name an active user of this company",
      );
    }
    if (more.length === 0) return [{ input: first }];
    const numbered = (input: NewTerritory, number: number): ReadFeature => {
      const suffix = ` (${number})`;
      return { input: { ...input, name: [...input.name].slice(0, limits.name - suffix.length).join("") + suffix } };
    };
    return [numbered(first, 1), ...more.map((input, at) => numbered(input, at + 2))];
  } catch (error) {
    if (error instanceof Invalid) return [{ fault: { code: error.code, detail: shortened(error.message) } }];
    throw error;
  }
}

/** Map programs write null or an empty text for a property without a value. Some write a number as the name. */
function nameOf(properties: Readonly<Record<string, unknown>>): unknown {
  for (const key of ["name", "Name", "NAME", "title"]) {
    const name = properties[key];
    if (typeof name === "number") return String(name);
    if (typeof name === "string" ? hasVisible(name) : name != null && key === "name") return name;
  }
  return undefined;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value !== "object" || value === null) return value === null ? "null" : `a ${typeof value}`;
  return "type" in value && typeof value.type === "string" ? `a ${value.type}` : "an object without a type";
}

/** Returns the one ring of each polygon. The third number of a position, its height, is left out. */
function ringsOf(geometry: unknown): unknown[][] {
  const { type, coordinates, crs } = parsed(
    Geometry,
    geometry,
    "unsupported_geometry",
    `geometry: must be a GeoJSON geometry, and is ${kindOf(geometry)}`,
  );
  if (!isKnownCrs(crs)) throw new Invalid("validation_failed", `geometry/crs: ${foreignCrs(crs)}`);
  if (type === "Polygon") return [ringOf(coordinates, "geometry/coordinates")];
  if (type !== "MultiPolygon") {
    throw new Invalid("unsupported_geometry", `geometry: is a ${type}, and a territory is a Polygon`);
  }
  const polygons = listIn(coordinates, "geometry/coordinates", "a list of polygons");
  const rings = polygons.map((polygon, at) => ringOf(polygon, `geometry/coordinates/${at}`));
  if (rings.length < 2) return rings;
  const valid = z.safeParse(z.array(RingInput), rings);
  const joined = valid.success && joinedAtMeridian(valid.data.map((ring) => exteriorRing(ring).slice(0, -1)));
  return joined ? [joined] : rings;
}

function ringOf(polygon: unknown, place: string): unknown[] {
  const [ring, hole] = listIn(polygon, place, "a list of rings");
  if (ring === undefined) throw new Invalid("validation_failed", `${place}: must have one ring`);
  const positions = listIn(ring, `${place}/0`, "a ring of positions");
  const wrong = positions.find((position) => !Array.isArray(position));
  if (wrong !== undefined) {
    throw new Invalid("validation_failed", `${place}/0: must be a ring of positions, and has ${kindOf(wrong)}`);
  }
  if (hole !== undefined) {
    throw new Invalid("unsupported_geometry", `${place.split("/")[0]}: has holes, and a territory has one ring`);
  }
  // A closed ring has one more position than it has points, because the last position repeats the first.
  const isClosed = String(positions.at(0)) === String(positions.at(-1));
  const points = isClosed && positions.length === limits.polygonPointsMax + 1 ? positions.slice(0, -1) : positions;
  if (points.length > limits.polygonPointsMax) {
    const found = `must have at most ${limits.polygonPointsMax} positions, and has ${points.length}`;
    throw new Invalid("validation_failed", `${place}/0: ${found}`);
  }
  return points.map((position) => (Array.isArray(position) ? position.slice(0, 2) : position));
}

const listIn = (value: unknown, place: string, what: string): unknown[] =>
  parsed(List, value, "validation_failed", `${place}: must be ${what}, and is ${kindOf(value)}`);

function parsed<S extends z.ZodMiniType>(
  schema: S,
  value: unknown,
  code: string,
  detail?: string,
  place?: string,
): z.output<S> {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Invalid(code, detail ?? `${placeOf(issue?.path ?? [], place)}: ${issue?.message ?? "is not valid"}`);
}

/** Converts the path of a field in `NewTerritory` to its path in the GeoJSON feature. */
const placeOf = ([field, ...inside]: readonly PropertyKey[], place = ""): string =>
  field === "polygon"
    ? [place, ...inside].join("/")
    : ["properties", ...(field === undefined ? [] : [field]), ...inside].join("/");

const shortened = (text: string): string =>
  text.length <= limits.featureFault ? text : `${text.slice(0, limits.featureFault - 1)}…`;

const Crs = z.object({ properties: z.object({ name: z.string() }) });

/** Accepts CRS84, and also EPSG:4326, because map programs write longitude before latitude for it too, as the service expects. */
const known =
  /^(?:(?:OGC:)?CRS:?84|EPSG:4326|urn:(?:x-)?ogc:def:crs:(?:OGC:[\d.]*:CRS:?84|EPSG:[\d.]*:4326)|https?:\/\/www\.opengis\.net\/def\/crs\/(?:OGC\/[\d.]+\/CRS84|EPSG\/\d+\/4326))$/i;

const crsName = (crs: unknown): string | undefined => {
  const named = z.safeParse(Crs, crs);
  return named.success ? named.data.properties.name : undefined;
};

export const isKnownCrs = (crs: unknown): boolean => crs == null || known.test(crsName(crs)?.trim() ?? "");

/** Returns why a reference system is refused, as the end of an error message. */
export function foreignCrs(crs: unknown): string {
  const name = crsName(crs);
  const found = name === undefined ? "has no text in properties/name" : `is ${name.slice(0, 100)}`;
  return `${found}, and the service reads only CRS84 and EPSG:4326`;
}
