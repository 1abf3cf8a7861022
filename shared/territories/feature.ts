/** Converts a feature of a GeoJSON file to a new territory. */
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { hasVisible } from "#shared/schema.ts";
import { NewTerritory } from "#shared/territories/territories.ts";

interface Fault {
  readonly code: string;
  readonly detail: string;
}

/** Either the territory of the feature, or the first fault of the feature. */
export interface ReadFeature {
  readonly input?: NewTerritory;
  readonly fault?: Fault;
}

const Feature = z.object({
  type: z.literal("Feature"),
  geometry: z.nullish(z.unknown()),
  properties: z.nullish(z.record(z.string(), z.unknown())),
});
const Geometry = z.object({ type: z.string(), coordinates: z.unknown() });
const List = z.array(z.unknown());

class Invalid extends Error {
  readonly code: string;
  constructor(code: string, detail: string) {
    super(detail);
    this.code = code;
  }
}

export function readFeature(feature: unknown, { users }: Pick<Dictionary, "users">): ReadFeature {
  try {
    const { geometry, properties } = parsed(Feature, feature, "not_a_feature", "must be a GeoJSON feature");
    const { name, totalProperties, assignedToUserId } = properties ?? {};
    const given = {
      polygon: geometry == null ? undefined : ringOf(geometry),
      // Map programs write null or an empty text for a property without a value, so both are read as if the property were missing.
      name: typeof name === "string" && !hasVisible(name) ? undefined : (name ?? undefined),
      totalProperties: totalProperties ?? undefined,
      assignedToUserId: assignedToUserId ?? null,
    };
    const input = parsed(NewTerritory, given, "validation_failed");
    if (input.assignedToUserId !== null && users.get(input.assignedToUserId)?.isActive !== true) {
      throw new Invalid(
        "invalid_reference",
        "properties/assignedToUserId: does not name an active user of this company",
      );
    }
    return { input };
  } catch (error) {
    if (error instanceof Invalid) return { fault: { code: error.code, detail: shortened(error.message) } };
    throw error;
  }
}

/** Returns the only ring of a polygon, or of a MultiPolygon that has one polygon. A third number of a position, its height, is left out. */
function ringOf(geometry: unknown): unknown[] {
  const { type, coordinates } = parsed(
    Geometry,
    geometry,
    "unsupported_geometry",
    "geometry: must be a GeoJSON geometry",
  );
  const rings = type === "MultiPolygon" ? onlyPolygon(coordinates) : coordinates;
  if (type !== "Polygon" && type !== "MultiPolygon") {
    throw new Invalid("unsupported_geometry", `geometry: is a ${type}, and a territory is a Polygon`);
  }
  const [ring, hole] = parsed(List, rings, "validation_failed", "geometry/coordinates: must be a list of rings");
  if (ring === undefined) throw new Invalid("validation_failed", "geometry/coordinates: must have one ring");
  const positions = parsed(List, ring, "validation_failed", "geometry/coordinates/0: must be a ring of positions");
  if (!positions.every((position) => Array.isArray(position))) {
    throw new Invalid("validation_failed", "geometry/coordinates/0: must be a ring of positions");
  }
  if (hole !== undefined) {
    throw new Invalid("unsupported_geometry", "geometry: has holes, and a territory has one ring");
  }
  if (positions.length > limits.polygonPointsMax) {
    throw new Invalid(
      "validation_failed",
      `geometry/coordinates/0: must have at most ${limits.polygonPointsMax} positions`,
    );
  }
  return positions.map((position) => (Array.isArray(position) ? position.slice(0, 2) : position));
}

function onlyPolygon(coordinates: unknown): unknown {
  const polygons = parsed(List, coordinates, "validation_failed", "geometry/coordinates: must be a list of polygons");
  if (polygons.length === 1) return polygons[0];
  const detail = `geometry: is a MultiPolygon with ${polygons.length} polygons, and a territory has one`;
  throw new Invalid("unsupported_geometry", detail);
}

function parsed<S extends z.ZodMiniType>(schema: S, value: unknown, code: string, detail?: string): z.output<S> {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Invalid(code, detail ?? `${placeOf(issue?.path ?? [])}: ${issue?.message ?? "is not valid"}`);
}

/** Converts the path of a field in `NewTerritory` to its path in the GeoJSON feature, for error messages. */
const placeOf = ([field, ...inside]: readonly PropertyKey[]): string =>
  field === "polygon"
    ? ["geometry/coordinates/0", ...inside].join("/")
    : ["properties", ...(field === undefined ? [] : [field]), ...inside].join("/");

const shortened = (text: string): string =>
  text.length <= limits.featureFault ? text : `${text.slice(0, limits.featureFault - 1)}…`;
