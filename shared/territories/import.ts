/**
 * Imports territories from GeoJSON, in groups of one transaction each. With an idempotency key, the transaction also writes a receipt, and
 * a repeated request skips the groups that have one.
 */
import { createHash } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { folded } from "#shared/caseless.ts";
import { iso } from "#shared/clock.ts";
import { territoriesChangeInHead } from "#shared/company-index/manifest.ts";
import { type ApiContext, commitTo } from "#shared/context.ts";
import { any, atMost, missing, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { carryOut, type Plan, unchanged } from "#shared/db/plan.ts";
import { explain } from "#shared/documentation.ts";
import { failedAt } from "#shared/errors.ts";
import { withoutCuts } from "#shared/geometry/meridian.ts";
import * as limits from "#shared/limits.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";
import { type Polygon, unpackPolygon } from "#shared/reference/polygon.ts";
import { Id, named } from "#shared/schema.ts";
import { foreignCrs, isKnownCrs, type ReadFeature, readFeature } from "#shared/territories/feature.ts";
import { exteriorRing } from "#shared/territories/geojson.ts";
import {
  countWrite,
  newTerritory,
  StoredTerritory,
  territoryWrites,
  tooManyTerritories,
} from "#shared/territories/territories.ts";

export const NewTerritories = named(
  "NewTerritories",
  z.object({
    type: z.literal("FeatureCollection", {
      error: ({ input }) =>
        `must be FeatureCollection, and is ${typeof input === "string" ? input.slice(0, 100) : "missing"}`,
    }),
    /** Validated later, because one invalid feature must not prevent the import of the others. */
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

/** The result of the import for one polygon of a feature. */
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

/** Maximum polygons of a group. Each needs three writes, and the group up to three more. A transaction has at most 100 writes. */
export const IMPORT_GROUP = 32;
const StoredGroup = z.object({
  type: z.literal("territoryImportGroup"),
  number: z.int(),
  results: z.array(PolygonResult),
  /** The time from which the receipt is ignored, in milliseconds since 1970. DynamoDB's TTL deletes the row later. */
  forgottenAt: z.number(),
  expiresAt: z.int(),
});
type StoredGroup = z.infer<typeof StoredGroup>;

/** Creates a territory for each valid polygon, unless the company has the same one (`signOf`). */
export async function importTerritories(
  context: ApiContext,
  caller: Caller,
  { features }: NewTerritories,
): Promise<TerritoryImport> {
  const names = await currentDictionary(context, caller.companyId);
  const read = placed(features.map((feature) => readFeature(feature, names)));
  const count = Math.ceil(read.length / IMPORT_GROUP);
  const known = await knownTerritories(context, caller.companyId, read);
  // Read after the known territories. Otherwise, a group that a concurrent execution of this request writes between the reads would be
  // reported as duplicates.
  const receipts = await readReceipts(context, caller, count);
  const results: PolygonResult[] = [];
  for (let number = 0; number < count; number++) {
    const own = read.slice(number * IMPORT_GROUP, (number + 1) * IMPORT_GROUP);
    const done = receipts.get(number) ?? (await importGroup(context, caller, number, own, known));
    for (const [at, { input }] of own.entries()) {
      const id = done[at]?.id ?? null;
      if (id !== null && input !== undefined) known.set(signOf(input), id);
    }
    results.push(...done);
  }
  const all = [...Map.groupBy(results, ({ index }) => index).values()].map(ofFeature);
  const counted = (outcome: FeatureResult["outcome"]): number => all.filter((one) => one.outcome === outcome).length;
  return { created: counted("created"), skipped: counted("skipped"), failed: counted("failed"), results: all };
}

/** A feature has failed if one of its polygons has failed. */
function ofFeature(results: readonly PolygonResult[]): FeatureResult {
  const ids = results.flatMap(({ id }) => (id === null ? [] : [id]));
  const by = (outcome: FeatureResult["outcome"]) => results.find((one) => one.outcome === outcome);
  const shown = by("failed") ?? by("created") ?? by("skipped");
  if (shown === undefined) throw new Error("a feature has no result");
  return { ...shown, id: ids[0] ?? null, ids };
}

/** A feature fails if the file would exceed the maximum number of polygons with it. */
function placed(features: readonly ReturnType<typeof readFeature>[]): PlacedFeature[] {
  let left = limits.territoryFeatures - features.length;
  return features.flatMap((polygons, index): PlacedFeature[] => {
    if (polygons.length - 1 > left) {
      const detail = `geometry: is a MultiPolygon with ${polygons.length} polygons, and a file may have ${limits.territoryFeatures}`;
      return [{ index, fault: { code: "unsupported_geometry", detail } }];
    }
    left -= polygons.length - 1;
    return polygons.map((polygon) => ({ index, ...polygon }));
  });
}

/** A polygon of a feature, with the position of the feature in the file. */
interface PlacedFeature extends ReadFeature {
  readonly index: number;
}

const groupKey = (caller: Caller, requestKey: string, number: number): keys.Key =>
  keys.requestPart(caller.companyId, caller.userId, requestKey, number);

async function readReceipts(
  { table, clock, requestKey }: ApiContext,
  caller: Caller,
  count: number,
): Promise<Map<number, readonly PolygonResult[]>> {
  if (requestKey === undefined) return new Map();
  const rows = await table.batchGet(Array.from({ length: count }, (_, number) => groupKey(caller, requestKey, number)));
  const groups = rows.map((row) => StoredGroup.parse(row)).filter(({ forgottenAt }) => forgottenAt > clock.now());
  return new Map(groups.map(({ number, results }) => [number, results]));
}

/** Returns the ids of the company's territories that have the same name as a feature, by the result of `signOf`. */
async function knownTerritories(
  { table }: ApiContext,
  companyId: number,
  features: readonly PlacedFeature[],
): Promise<Map<string, number>> {
  const names = new Set(features.flatMap(({ input }) => (input === undefined ? [] : [folded(input.name)])));
  const known = new Map<string, number>();
  if (names.size === 0) return known;
  for await (const item of table.query(keys.territories(companyId))) {
    const { id, name, polygon } = StoredTerritory.parse(item);
    // Unpack only the polygons with a name of the file, because all polygons of a company may not fit into memory.
    if (names.has(folded(name))) known.set(signOf({ name, polygon: unpackPolygon(polygon) }), id);
  }
  return known;
}

/** Returns a hash that is equal for the same name, ignoring case, and the same ring, whatever its direction and first point. */
export function signOf({ name, polygon = [] }: { name: string; polygon?: Polygon | undefined }): string {
  // A cut at the 180th meridian adds points, which do not change the polygon.
  const ring = exteriorRing(withoutCuts(polygon)).slice(0, -1);
  const isBefore = ([x, y]: readonly [number, number], [otherX, otherY]: readonly [number, number]): boolean =>
    x === otherX ? y < otherY : x < otherX;
  const start = ring.reduce((first, point, i) => (isBefore(point, ring[first] ?? point) ? i : first), 0);
  const turned = [...ring.slice(start), ...ring.slice(0, start)];
  return createHash("sha256")
    .update(JSON.stringify([folded(name), turned]))
    .digest("base64");
}

const result = (index: number, outcome: PolygonResult["outcome"], more: Partial<PolygonResult>): PolygonResult => ({
  index,
  outcome,
  id: null,
  code: null,
  detail: null,
  ...more,
});

/** A polygon of a group, with its territory if the group creates one. */
interface Entry {
  readonly shown: PolygonResult;
  readonly territory?: StoredTerritory;
}

async function importGroup(
  context: ApiContext,
  caller: Caller,
  number: number,
  group: readonly PlacedFeature[],
  known: ReadonlyMap<string, number>,
): Promise<readonly PolygonResult[]> {
  const seen = new Map(known);
  const entries: Entry[] = [];
  const now = iso(context.clock.now());
  for (const { index, input, fault } of group) {
    if (input === undefined) {
      entries.push({ shown: result(index, "failed", fault ?? {}) });
      continue;
    }
    const sign = signOf(input);
    const id = seen.get(sign);
    if (id !== undefined) {
      const detail = `The company has a territory with this name and this polygon: ${id}.`;
      entries.push({ shown: result(index, "skipped", { id, code: "duplicate", detail }) });
      continue;
    }
    const territory = newTerritory(await context.ids.next(), caller, input, now);
    seen.set(sign, territory.id);
    entries.push({ shown: result(index, "created", { id: territory.id }), territory });
  }
  const plan = async () => groupPlan(context, caller, number, entries);
  return (await carryOut(plan, commitTo(context.table))).answer;
}

function groupPlan(
  context: ApiContext,
  caller: Caller,
  number: number,
  entries: readonly Entry[],
): Plan<readonly PolygonResult[]> {
  const { companyId } = caller;
  const answer = entries.map(({ shown }) => shown);
  const territories = entries.flatMap(({ territory }) => territory ?? []);
  if (territories.length === 0) return unchanged(answer);
  const bytes = territories.reduce((sum, { polygonBytes }) => sum + polygonBytes, 0);
  const receipt = receiptWrites(context, caller, number, answer);
  return {
    writes: [
      countWrite(companyId, territories.length, bytes),
      ...receipt,
      ...territories.flatMap(territoryWrites),
      territoriesChangeInHead(companyId),
    ],
    answer,
    refused: (error) => {
      // Another execution of this request has already written the group.
      const earlier = receipt.length === 0 ? undefined : failedAt(error, 1);
      if (earlier !== undefined) return Promise.resolve(unchanged(StoredGroup.parse(earlier.item).results));
      const full = failedAt(error, 0);
      if (full === undefined) return undefined;
      const fitting = thatFit(full.item, territories);
      const refused = new Set(territories.filter((one) => !fitting.includes(one)).map(({ id }) => id));
      const detail = tooManyTerritories().message;
      const left = entries.map((entry): Entry => {
        const { index, id } = entry.shown;
        // A duplicate of a refused territory is refused too.
        const isRefused = id !== null && refused.has(id);
        return isRefused ? { shown: result(index, "failed", { code: "conflict", detail }) } : entry;
      });
      return Promise.resolve(groupPlan(context, caller, number, left));
    },
  };
}

const Count = z.object({ territories: z.int(), polygonBytes: z.int() });

/** Returns the territories for which the company has room. `count` is the row with the company's present counts. */
function thatFit(count: unknown, wanted: readonly StoredTerritory[]): StoredTerritory[] {
  let { territories, polygonBytes } = Count.parse(count);
  return wanted.filter((territory) => {
    const isRoom =
      territories < limits.territoriesPerCompany &&
      polygonBytes + territory.polygonBytes <= limits.polygonBytesPerCompany;
    if (isRoom) {
      territories++;
      polygonBytes += territory.polygonBytes;
    }
    return isRoom;
  });
}

function receiptWrites(
  { clock, requestKey }: ApiContext,
  caller: Caller,
  number: number,
  results: readonly PolygonResult[],
): Write[] {
  if (requestKey === undefined) return [];
  const now = clock.now();
  const forgottenAt = now + limits.idempotencyKeptMs;
  const expiresAt = Math.ceil(forgottenAt / 1_000);
  const stored: StoredGroup = { type: "territoryImportGroup", number, results: [...results], forgottenAt, expiresAt };
  return [
    {
      put: { ...groupKey(caller, requestKey, number), ...stored },
      when: any(missing("pk"), atMost("forgottenAt", now)),
    },
  ];
}
