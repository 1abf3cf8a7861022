/** Tests territories in GeoJSON: their rings, and imports with faults, duplicates and limits, or that are killed at any call. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { once } from "#shared/http/idempotency.ts";
import * as limits from "#shared/limits.ts";
import type { Polygon } from "#shared/reference/polygon.ts";
import { exteriorRing, featureOf } from "#shared/territories/geojson.ts";
import {
  IMPORT_GROUP,
  importTerritories,
  NewTerritories,
  signOf,
  TerritoryImport,
} from "#shared/territories/import.ts";
import { listTerritories } from "#shared/territories/territories.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { deaths, killedAt, killPointsOf } from "../harness/kills.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import { rectangle, ringOf } from "../harness/rings.ts";
import { present } from "../harness/shapes.ts";
import { sized } from "../harness/tier.ts";
import { createTerritory, deleteTerritory, updateTerritory } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
const clock = { now: () => now.ms };
const direct = (): ApiContext => contextOn(db.direct, clock);

const ring = (at: number) => ringOf(`${at} 0, ${at + 1} 0, ${at + 1} 1, ${at} 0`);
const feature = (name: unknown, coordinates: unknown = [ring(0)], type = "Polygon"): object => ({
  type: "Feature",
  geometry: { type, coordinates },
  properties: { name },
});
const collection = (...features: unknown[]) => ({ type: "FeatureCollection" as const, features });

const listed = (companyId: number) => Array.fromAsync(listTerritories(direct(), companyId));

const faultsOf = ({ results }: TerritoryImport) => results.map(({ outcome, code }) => code ?? outcome);

test("a file is imported feature by feature, and a wrong feature does not stop the others", async () => {
  const { caller, repId } = await newCompany(direct());
  const tooMany = Array.from({ length: limits.polygonPointsMax + 1 }, (_, i) => [i / 100, 0]);
  const closed = [...tooMany.slice(1), [0.01, 0]];
  const bowTie = ringOf("0 0, 1 1, 1 0, 0 1, 0 0");
  const wanted: [feature: unknown, result: string][] = [
    [feature("ok"), "created"],
    [feature("OK", [ring(0).slice(1)]), "duplicate"],
    [feature("ok", [ring(0).toReversed()]), "duplicate"],
    [{ ...feature("no shape"), geometry: null }, "created"],
    [{ type: "Feature", geometry: null, properties: null }, "created"],
    [feature("heights", [ring(3).map(([lng, lat]) => [lng, lat, 1_600])]), "created"],
    [feature("one of many", [[ring(5)]], "MultiPolygon"), "created"],
    [feature("crossing itself", [bowTie]), "created"],
    [feature("most points", [closed]), "created"],
    [feature("two", [[ring(5)], [ring(9)]], "MultiPolygon"), "created"],
    [feature("hole in one", [[ring(5)], [ring(9), ring(9)]], "MultiPolygon"), "unsupported_geometry"],
    [feature("nothing", [], "MultiPolygon"), "unsupported_geometry"],
    [feature("hole", [ring(0), ring(0)]), "unsupported_geometry"],
    [feature("point", [0, 0], "Point"), "unsupported_geometry"],
    [{ type: "Feature", geometry: { type: "GeometryCollection", geometries: [] } }, "unsupported_geometry"],
    [feature("texts", [ring(0).map((point) => point.map(String))]), "validation_failed"],
    [feature("far", [ringOf("0 0, 181 0, 1 1, 0 0")]), "validation_failed"],
    [feature("short", [ring(0).slice(0, 2)]), "validation_failed"],
    [feature("long", [tooMany]), "validation_failed"],
    [feature("no ring", []), "validation_failed"],
    [feature("flat", ring(0)), "validation_failed"],
    [feature(7), "created"],
    [feature(true), "validation_failed"],
    [{ ...feature("mercator"), crs: { type: "name", properties: { name: "EPSG:3857" } } }, "validation_failed"],
    // The polygon differs from that of the other features, because a territory with the same name and polygon counts as a duplicate.
    [feature(" \u0000", [ring(20)]), "created"],
    [feature("x".repeat(256)), "validation_failed"],
    [{ ...feature("staff"), properties: { name: "staff", assignedToUserId: repId, totalProperties: 9 } }, "created"],
    [{ ...feature("staff"), properties: { name: "nobody", assignedToUserId: 2 ** 50 } }, "invalid_reference"],
    [ring(0), "not_a_feature"],
    [null, "not_a_feature"],
    ["x".repeat(1_000), "not_a_feature"],
  ];
  const made = await importTerritories(direct(), caller, collection(...wanted.map(([sent]) => sent)));
  expect(faultsOf(made)).toEqual(wanted.map(([, result]) => result));
  expect(made.results.map(({ index }) => index)).toEqual(wanted.map((_, index) => index));
  const created = wanted.filter(([, result]) => result === "created").length;
  expect(made).toMatchObject({ created, skipped: 2, failed: wanted.length - created - 2 });
  for (const { detail } of made.results) expect((detail ?? "").length).toBeLessThanOrEqual(limits.featureFault);
  const territories = await listed(caller.companyId);
  expect(territories).toHaveLength(created + 1);
  const byName = new Map(territories.map((territory) => [territory.name, territory]));
  expect(byName.get("ok")?.polygon).toEqual(ring(0));
  expect(byName.get("heights")?.polygon).toEqual(ring(3));
  expect(byName.get("one of many")?.polygon).toEqual(ring(5));
  expect(byName.get("crossing itself")?.polygon).toEqual(bowTie);
  expect(byName.get("no shape")?.polygon).toEqual([]);
  const untitled = territories.filter(({ name }) => name === "Untitled Territory").map(({ polygon }) => polygon);
  expect(untitled.toSorted((a, b) => a.length - b.length)).toEqual([[], ring(20)]);
  expect(byName.get("staff")).toMatchObject({ assignedToUserId: repId, totalProperties: 9 });
});

test("the ids of a MultiPolygon have the order of its polygons, also for a duplicate in a later group", async () => {
  const { caller } = await newCompany(direct());
  await importTerritories(direct(), caller, collection(feature("north (2)", [ring(5)])));
  const [old] = await listed(caller.companyId);
  const others = Array.from({ length: IMPORT_GROUP }, (_, i) => feature(`other ${i}`));
  const both = feature("north", [[ring(9)], [ring(5)]], "MultiPolygon");
  const file = collection(both, ...others, feature("north (1)", [ring(9)]));
  const { results } = await importTerritories(direct(), caller, file);
  const made = (await listed(caller.companyId)).find(({ name }) => name === "north (1)");
  expect(results[0]).toMatchObject({ outcome: "created", ids: [made?.id, old?.id] });
  expect(results.at(-1)).toMatchObject({ outcome: "skipped", ids: [made?.id] });
});

test("each polygon of a MultiPolygon becomes a territory, and one that is cut at the 180th meridian becomes one; the own list creates nothing", async () => {
  const { caller } = await newCompany(direct());
  const square = (west: number) => [...rectangle(west, 0, west + 10, 10), [west, 0]];
  const islands = Array.from({ length: 40 }, (_, i) => [ring(i)]);
  const file = collection(
    feature("Fiji", [[square(170)], [square(-180)]], "MultiPolygon"),
    feature("Isles", islands, "MultiPolygon"),
    { ...feature(null, [square(10)]), properties: { NAME: "Upper", title: "Title" } },
    { ...feature(null, [square(20)]), properties: { name: " ", title: 12.5 } },
  );
  const answer = await importTerritories(direct(), caller, file);
  expect(answer).toMatchObject({ created: 4, skipped: 0, failed: 0 });
  expect(answer.results.map(({ ids }) => ids.length)).toEqual([1, 40, 1, 1]);
  expect(answer.results.map(({ id, ids }) => id === ids[0])).toEqual([true, true, true, true]);
  const all = await listed(caller.companyId);
  const isles = answer.results[1]?.ids.map((id) => all.find((territory) => territory.id === id)?.name);
  expect(isles).toEqual(islands.map((_, i) => `Isles (${i + 1})`));
  expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining(["Fiji", "Upper", "12.5"]));
  const fiji = all.find(({ name }) => name === "Fiji");
  expect(fiji?.polygon).toHaveLength(4);
  expect(present(fiji && featureOf(fiji).geometry)).toMatchObject({ type: "MultiPolygon", coordinates: { length: 2 } });
  expect(await importTerritories(direct(), caller, file)).toMatchObject({ created: 0, skipped: 4, failed: 0 });
  const own = await importTerritories(direct(), caller, collection(...all.map(featureOf)));
  expect(own).toMatchObject({ created: 0, skipped: 43, failed: 0 });
  expect(own.results.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
  expect(await listed(caller.companyId)).toEqual(all);
});

test("a message names what was found instead", async () => {
  const { caller } = await newCompany(direct());
  const details: [feature: unknown, detail: string][] = [
    [ring(0), "must be a GeoJSON feature, and is a list"],
    [{ type: "Topology" }, "must be a GeoJSON feature, and is a Topology"],
    [feature("T", [ring(0)], "LineString"), "geometry: is a LineString, and a territory is a Polygon"],
    [{ ...feature("T"), geometry: "x" }, "geometry: must be a GeoJSON geometry, and is a string"],
    [feature("T", 7), "geometry/coordinates: must be a list of rings, and is a number"],
    [
      { ...feature("T"), crs: { type: "name", properties: { name: "urn:ogc:def:crs:EPSG::3857" } } },
      "crs: is urn:ogc:def:crs:EPSG::3857, and the service reads only CRS84 and EPSG:4326",
    ],
  ];
  const { results } = await importTerritories(direct(), caller, collection(...details.map(([sent]) => sent)));
  expect(results.map(({ detail }) => detail)).toEqual(details.map(([, detail]) => detail));
  const read = (name: string) =>
    NewTerritories.safeParse({ ...collection(), crs: { type: "name", properties: { name } } }).success;
  for (const name of [
    "urn:ogc:def:crs:OGC:1.3:CRS84",
    "urn:ogc:def:crs:OGC::CRS84",
    "OGC:CRS84",
    "CRS84",
    "EPSG:4326",
    "epsg:4326",
    "urn:ogc:def:crs:EPSG::4326",
    "urn:ogc:def:crs:EPSG:6.6:4326",
    "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
  ]) {
    expect([name, read(name)]).toEqual([name, true]);
  }
  for (const name of ["EPSG:3857", "EPSG:43260", "urn:ogc:def:crs:EPSG::3857", ""]) expect(read(name)).toBe(false);
});

test("territories with the same name and ring have the same sign, wherever the ring begins and in both directions", () => {
  const point = fc.tuple(fc.integer({ min: -180, max: 180 }), fc.integer({ min: -90, max: 90 }));
  fc.assert(
    fc.property(fc.uniqueArray(point, { minLength: 3, maxLength: 6, selector: String }), fc.nat(5), (open, turn) => {
      const turned = [...open.slice(turn), ...open.slice(0, turn)];
      const closed = [...turned, ...turned.slice(0, 1)];
      const sign = signOf({ name: "North", polygon: open });
      expect(signOf({ name: "NORTH", polygon: closed })).toBe(sign);
      expect(signOf({ name: "South", polygon: closed })).not.toBe(sign);
    }),
    { numRuns: 200 },
  );
  expect(signOf({ name: "T", polygon: ring(0).toReversed() })).toBe(signOf({ name: "T", polygon: ring(0) }));
});

test("an import creates as many territories as the company has room for, also beside another import", async () => {
  const { caller } = await newCompany(direct());
  const { companyId } = caller;
  await createTerritory(direct(), caller, { name: "T", totalProperties: 0, assignedToUserId: null });
  const room = 30;
  const set = { territories: limits.territoriesPerCompany - room };
  await direct().table.write({ update: keys.territoryCount(companyId), change: { set } });
  const file = (name: string) =>
    collection(...Array.from({ length: 40 }, (_, i) => feature(`${name} ${i % 39}`, [ring(i % 39)])));
  const answers = await Promise.all(["a", "b"].map((name) => importTerritories(direct(), caller, file(name))));
  expect(answers.reduce((sum, { created }) => sum + created, 0)).toBe(room);
  for (const answer of answers) {
    expect(answer.created + answer.skipped + answer.failed).toBe(40);
    const ids = new Set(answer.results.flatMap(({ outcome, id }) => (outcome === "created" ? [id] : [])));
    // The last feature is the same as the first one. If the first one was created, the last one names its territory. Otherwise the last one
    // fails too.
    const [first, last] = [answer.results.at(0), answer.results.at(-1)];
    if (first?.outcome === "created") expect(ids.has(last?.id ?? 0)).toBe(true);
    else expect(last).toMatchObject({ outcome: "failed", code: "conflict", id: null });
  }
  expect(await listed(companyId)).toHaveLength(room + 1);
});

const send = async (context: ApiContext, caller: Caller, file: ReturnType<typeof collection>) => {
  const request = keyedPost("a key", JSON.stringify(file));
  const { value } = await once(context, caller, request, {}, async (commit, requestKey) => {
    const answer = await importTerritories({ ...context, requestKey }, caller, file);
    await commit({ writes: [], answer });
    return answer;
  });
  return TerritoryImport.parse(value);
};

const file = collection(
  ...Array.from({ length: 100 }, (_, i) => feature(`T ${i}`, [ring(i)])),
  feature("hole", [[], []]),
);

test.each(deaths)(
  "an import that is killed %s any call and sent again creates each territory once, even if users change some meanwhile",
  async (when, death) => {
    const counted = await newCompany(direct());
    db.plan(() => pass);
    await send(contextOn(db.table, clock), counted.caller, file);
    const calls = db.calls.length;
    for (const call of killPointsOf(calls, when === "before" ? 0 : 1)) {
      const { caller } = await newCompany(direct());
      const { companyId } = caller;
      db.plan(killedAt(call, death));
      await send(contextOn(db.table, clock), caller, file).catch(() => undefined);
      db.plan(() => pass);
      const [some, other] = await listed(companyId);
      if (some !== undefined) await updateTerritory(direct(), caller, some.id, { name: "Renamed" });
      if (other !== undefined) await deleteTerritory(direct(), caller, other.id);
      now.ms += limits.idempotentRunMs;
      const answer = await send(direct(), caller, file);
      expect(answer).toMatchObject({ created: 100, skipped: 0, failed: 1 });
      const ids = new Set(answer.results.slice(0, 100).map(({ id }) => id));
      expect(ids.size).toBe(100);
      const left = await listed(companyId);
      expect(left).toHaveLength(other === undefined ? 100 : 99);
      for (const { id } of left) expect(ids).toContain(id);
      expect(await send(direct(), caller, file)).toEqual(answer);
      expect(await direct().table.get(keys.territoryCount(companyId))).toMatchObject({ territories: left.length });
    }
  },
);

test("two executions of one request at the same time create each territory once, and the key is free after a day", async () => {
  const { caller } = await newCompany(direct());
  const own = { ...direct(), requestKey: "the same" };
  const answers = await Promise.all([1, 2, 3].map(() => importTerritories(own, caller, file)));
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  const made = await listed(caller.companyId);
  expect(made).toHaveLength(100);
  for (const { id } of made) await deleteTerritory(direct(), caller, id);
  expect(await importTerritories(own, caller, file)).toEqual(answers[0]);
  now.ms += limits.idempotencyKeptMs;
  expect(await importTerritories(own, caller, file)).toMatchObject({ created: 100 });
  expect(await listed(caller.companyId)).toHaveLength(100);
});

/** Units in a degree. The coordinates of this test have seven decimals and are integers in these units, so areas are exact. */
const SCALE = 1e7;
const coordinate = (limit: number) =>
  fc.integer({ min: -limit * SCALE, max: limit * SCALE }).map((value) => value / SCALE);
const anyRing = fc.array(fc.tuple(coordinate(180), coordinate(90)), { minLength: 3, maxLength: 8 });
/** Small rings around one point, about as large as a neighbourhood of a town. */
const town = fc
  .tuple(
    fc.tuple(coordinate(179), coordinate(89)),
    fc.array(fc.tuple(coordinate(0.01), coordinate(0.01)), { minLength: 3, maxLength: 8 }),
  )
  .map(([[lng, lat], offsets]) =>
    offsets.map(([x, y]): [number, number] => [
      Math.round((lng + x) * SCALE) / SCALE,
      Math.round((lat + y) * SCALE) / SCALE,
    ]),
  );

/** Returns twice the area, in square units of the last decimal. It is positive if the ring is counter-clockwise. */
function exactArea(polygon: Polygon): bigint {
  const points = polygon.map((point) => point.map((value) => BigInt(Math.round(value * SCALE))));
  return points.reduce((sum, [x = 0n, y = 0n], i) => {
    const [nextX = 0n, nextY = 0n] = points[(i + 1) % points.length] ?? [];
    return sum + x * nextY - nextX * y;
  }, 0n);
}

const edges = (polygon: Polygon): string[] =>
  polygon
    .map((point, i) => [point, polygon[(i + 1) % polygon.length] ?? point])
    .filter(([a, b]) => JSON.stringify(a) !== JSON.stringify(b))
    .map((edge) =>
      edge
        .map((point) => JSON.stringify(point))
        .toSorted()
        .join(),
    )
    .toSorted();

test("each polygon becomes a closed, counter-clockwise ring with the same edges", { tags: "sized" }, () => {
  fc.assert(
    fc.property(fc.oneof(anyRing, town), fc.boolean(), (open, isClosed) => {
      const polygon = isClosed ? [...open, open[0] ?? [0, 0]] : open;
      const before = JSON.stringify(polygon);
      const made = exteriorRing(polygon);
      expect(JSON.stringify(polygon)).toBe(before);
      expect(made.length).toBeGreaterThanOrEqual(4);
      expect(made.at(-1)).toEqual(made.at(0));
      expect(exactArea(made) >= 0n).toBe(true);
      expect(edges(made)).toEqual(edges(polygon));
    }),
    { numRuns: sized({ short: 300, wide: 3_000 }) },
  );
});

test.each([
  ["a closed polygon of three points", "0 0, 1 1, 0 0", "0 0, 1 1, 0 0, 0 0"],
  ["one point three times", "5 5, 5 5, 5 5", "5 5, 5 5, 5 5, 5 5"],
  [
    "an area from one end of the map to the other",
    "-180 -90, -180 90, 180 90, 180 -90",
    "-180 -90, 180 -90, 180 90, -180 90, -180 -90",
  ],
])("%s becomes a valid ring", (_, polygon, expected) => {
  expect(exteriorRing(ringOf(polygon))).toEqual(ringOf(expected));
});
