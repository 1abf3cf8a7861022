/** Tests the cache of prepared polygons, which filters, statistics and reports share. */
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { packPolygon } from "#shared/reference/polygon.ts";
import { areaOf } from "#shared/reference/territory-areas.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";

const db = faultyDynamoDb();

const zigzag = (height: number) =>
  packPolygon(Array.from({ length: 8 }, (_, i): [number, number] => [i / 8, i % 2 === 0 ? 0 : height]));

test("a polygon is prepared once, until it changes or the prepared polygons need too much memory", () => {
  const { table } = contextOn(db.direct, { now: () => 0 });
  const areaAt = (territoriesVersion: number, id: number, height: number, companyId = 1) =>
    areaOf({ table, companyId, head: { logId: "", territoriesVersion } }, { id, polygon: zigzag(height) });
  const first = areaAt(1, 1, 1);
  expect(areaAt(2, 1, 1)).toBe(first);
  expect(areaAt(2, 1, 1, 2)).not.toBe(first);
  const changed = areaAt(3, 1, 2);
  expect([first.contains(1.5, 0.7), changed.contains(1.5, 0.63)]).toEqual([false, true]);
  for (let id = 2; id < 600; id++) areaAt(3, id, 1);
  expect(areaAt(3, 1, 2)).not.toBe(changed);
  expect(areaAt(3, 599, 1)).toBe(areaAt(3, 599, 1));
});
