/** The schemas of the API for imports of territories from GeoJSON. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { Id, named } from "#shared/schema.ts";
import { foreignCrs, isKnownCrs } from "#shared/territories/crs.ts";

export const NewTerritories = named(
  "NewTerritories",
  z.object({
    type: z.literal("FeatureCollection", {
      error: ({ input }) =>
        `must be FeatureCollection, and is ${typeof input === "string" ? input.slice(0, 100) : "missing"}`,
    }),
    /** Each feature is validated later, because one invalid feature must not prevent the import of the other features. */
    features: z.array(z.unknown()).check(z.maxLength(limits.territoryFeatures)),
    crs: z.optional(z.unknown().check(z.refine(isKnownCrs, { error: ({ input }) => foreignCrs(input) }))),
  }),
  "A GeoJSON FeatureCollection (RFC 7946) of polygons.",
);
export type NewTerritories = z.output<typeof NewTerritories>;

/* @__PURE__ */ explain([NewTerritories], () => ({
  fields: {
    features: `At most ${limits.territoryFeatures} features. Each becomes one territory, or one for each polygon of a MultiPolygon; at most ${limits.territoryFeatures} together.`,
    crs: "The coordinate reference system of files from before RFC 7946. Only CRS84 and EPSG:4326 are accepted.",
  },
  example: {
    type: "FeatureCollection",
    features: [
      {
        type: "Feature",
        geometry: {
          type: "Polygon",
          coordinates: [
            [
              [-104.987, 39.727],
              [-104.973, 39.727],
              [-104.973, 39.74],
              [-104.987, 39.727],
            ],
          ],
        },
        properties: { name: "Capitol Hill", totalProperties: 410 },
      },
    ],
  },
}));

/** What became of one polygon of a feature. */
export const PolygonResult = z.object({
  index: z.int(),
  outcome: z.enum(["created", "skipped", "failed"]),
  id: z.nullable(Id),
  code: z.nullable(z.string()),
  detail: z.nullable(z.string()),
});
export type PolygonResult = z.infer<typeof PolygonResult>;

export const FeatureResult = named(
  "FeatureResult",
  z.extend(PolygonResult, { ids: z.array(Id) }),
  "What became of one feature.",
);
export type FeatureResult = z.infer<typeof FeatureResult>;

/* @__PURE__ */ explain([FeatureResult], () => ({
  fields: {
    index: "The position of the feature in the file. The first one has 0.",
    outcome:
      "`created`, `skipped` if the company has the same territory already, or `failed` if the feature, or one of its polygons, cannot be imported.",
    id: "The id of the new territory, or of the territory that is the same. The first of `ids`.",
    ids: "The ids of all territories of the feature. A MultiPolygon may have several.",
    code: "Why no territory was created, for programs: `duplicate`, `not_a_feature`, `unsupported_geometry`, `validation_failed`, `invalid_reference` or `conflict`.",
    detail: "Why no territory was created, for people.",
  },
}));

export const TerritoryImport = named(
  "TerritoryImport",
  z.object({ created: z.int(), skipped: z.int(), failed: z.int(), results: z.array(FeatureResult) }),
  "The result of an import of territories. The three counts sum to the number of features.",
);
export type TerritoryImport = z.infer<typeof TerritoryImport>;

/* @__PURE__ */ explain([TerritoryImport], () => ({
  fields: {
    created: "The number of new territories.",
    skipped: "The number of features that the company has already.",
    failed: "The number of features that cannot be imported.",
    results: "One entry for each feature, in the order of the file.",
  },
}));
