/** Tests the cache of prepared polygons, which filters, statistics and reports share. */
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { packPolygon } from "#shared/reference/polygon.ts";
import { areaOf } from "#shared/reference/territory-areas.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";

const db = faultyDynamoDb();

const zigzag = (height: number) =>
  packPolygon(Array.from({ length: 5_000 }, (_, i): [number, number] => [i / 5_000, i % 2 === 0 ? 0 : height]));

test("a polygon is prepared once, until it changes or the prepared polygons need too much memory", () => {
  const place = { table: contextOn(db.direct, { now: () => 0 }).table, companyId: 1 };
  const first = areaOf(place, { id: 1, polygon: zigzag(1) });
  expect(areaOf(place, { id: 1, polygon: zigzag(1) })).toBe(first);
  expect(areaOf({ ...place, companyId: 2 }, { id: 1, polygon: zigzag(1) })).not.toBe(first);
  const changed = areaOf(place, { id: 1, polygon: zigzag(2) });
  expect([first.contains(1.5, 0.7), changed.contains(1.5, 0.75 + 1e-5)]).toEqual([false, true]);
  for (let id = 2; id < 600; id++) areaOf(place, { id, polygon: zigzag(1) });
  expect(areaOf(place, { id: 1, polygon: zigzag(2) })).not.toBe(changed);
  expect(areaOf(place, { id: 599, polygon: zigzag(1) })).toBe(areaOf(place, { id: 599, polygon: zigzag(1) }));
});
