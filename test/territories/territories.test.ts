/** Tests the cost of listing territories, the limits of their number and size, and writes that are killed at any call to the table. */
import { expect, test } from "vitest";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import * as limits from "#shared/limits.ts";
import { getTerritory, listTerritories } from "#shared/territories/territories.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { deaths, killedAt } from "../harness/kills.ts";
import { createTerritory, deleteTerritory, updateTerritory } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
const clock = { now: () => now.ms++ };
const newFunction = (): ApiContext => warmFunction(db, clock);
const empty = { name: "T", totalProperties: 0, assignedToUserId: null };

/** Returns a ring of points. Their coordinates have six decimals (about 10 cm), as map programs send them. */
const ring = (points: number): [number, number][] =>
  Array.from({ length: points }, (_, i) => {
    const angle = (i / points) * 2 * Math.PI;
    return [Number((-105 + 0.1 * Math.cos(angle)).toFixed(6)), Number((39.7 + 0.1 * Math.sin(angle)).toFixed(6))];
  });

const listed = (context: ApiContext, companyId: number) => Array.fromAsync(listTerritories(context, companyId));

test("a list reads a small part of the text of its polygons, and no deleted territory", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const { companyId } = caller;
  const units = async () => (await metered(() => listed(context, companyId))).usage.readUnits;
  const none = await units();
  const polygon = ring(limits.polygonPointsMax);
  const made = [];
  for (let i = 0; i < 30; i++)
    made.push(await createTerritory(i % 2 === 0 ? context : newFunction(), caller, { ...empty, polygon }));
  expect(await listed(context, companyId)).toEqual(made.toReversed());
  // As JSON text, 30 such polygons would need 860 read units. The service stores them packed, so they need at most 120.
  expect((30 * JSON.stringify(polygon).length) / 4_096).toBeGreaterThan(800);
  expect(await units()).toBeLessThanOrEqual(120);
  for (const { id } of made) await deleteTerritory(context, caller, id);
  expect(await listed(context, companyId)).toEqual([]);
  expect(await units()).toBe(none);
  await expect(getTerritory(context, companyId, made[0]?.id ?? 0)).rejects.toMatchObject({ code: "not_found" });
});

const conflict = { code: "conflict" };
const setCount = (context: ApiContext, companyId: number, count: object) =>
  context.table.write({ update: keys.territoryCount(companyId), change: { set: { ...count } } });

test("a company accepts 5 000 territories under concurrency, and one more after a deletion", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const { id } = await createTerritory(context, caller, empty);
  await setCount(context, caller.companyId, { territories: limits.territoriesPerCompany - 2 });
  const made = await Promise.allSettled(Array.from({ length: 6 }, () => createTerritory(newFunction(), caller, empty)));
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  for (const one of made) if (one.status === "rejected") expect(one.reason).toMatchObject(conflict);
  await Promise.allSettled([1, 2, 3].map(() => deleteTerritory(newFunction(), caller, id)));
  await createTerritory(context, caller, empty);
  await expect(createTerritory(context, caller, empty)).rejects.toMatchObject(conflict);
  expect(await listed(context, caller.companyId)).toHaveLength(3);
});

test("the polygons of a company take at most 180 MB together, whether a polygon is new or becomes larger", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const polygon = ring(100);
  const bytes = JSON.stringify(polygon).length;
  const { id } = await createTerritory(context, caller, { ...empty, polygon });
  expect(await context.table.get(keys.territoryCount(caller.companyId))).toMatchObject({ polygonBytes: bytes });
  await setCount(context, caller.companyId, { polygonBytes: limits.polygonBytesPerCompany - 10 });
  await expect(createTerritory(context, caller, { ...empty, polygon })).rejects.toMatchObject(conflict);
  await expect(updateTerritory(context, caller, id, { polygon: ring(101) })).rejects.toMatchObject(conflict);
  await createTerritory(context, caller, empty);
  await updateTerritory(context, caller, id, { name: "others change still", polygon });
  await updateTerritory(context, caller, id, { polygon: ring(3) });
  await updateTerritory(context, caller, id, { polygon });
  await deleteTerritory(context, caller, id);
  await createTerritory(context, caller, { ...empty, polygon });
  await setCount(context, caller.companyId, { polygonBytes: limits.polygonBytesPerCompany - bytes + 1 });
  await expect(createTerritory(context, caller, { ...empty, polygon })).rejects.toMatchObject(conflict);
  await setCount(context, caller.companyId, { polygonBytes: limits.polygonBytesPerCompany - bytes });
  await createTerritory(context, caller, { ...empty, polygon });
});

test.each(deaths)("killed %s any call, a territory is whole or absent, and the counts are exact", async (_, death) => {
  const direct = newFunction();
  const { caller } = await newCompany(direct);
  const { companyId } = caller;
  const works = [
    (context: ApiContext) => createTerritory(context, caller, { ...empty, polygon: ring(5) }),
    (context: ApiContext, id: number) => updateTerritory(context, caller, id, { polygon: ring(9) }),
    (context: ApiContext, id: number) => deleteTerritory(context, caller, id),
  ];
  for (const work of works) {
    for (let killedCall = 1; killedCall <= 6; killedCall++) {
      const { id } = await createTerritory(direct, caller, { ...empty, polygon: ring(4) });
      db.plan(killedAt(killedCall, death));
      await work(contextOn(db.table, clock), id).catch(() => undefined);
      db.plan(() => pass);
      const all = await listed(direct, companyId);
      const bytes = all.reduce((sum, { polygon }) => sum + JSON.stringify(polygon).length, 0);
      const counted = { territories: all.length, polygonBytes: bytes };
      expect(await direct.table.get(keys.territoryCount(companyId))).toMatchObject(counted);
      for (const territory of all) expect(await getTerritory(direct, companyId, territory.id)).toEqual(territory);
      for (const territory of all) await deleteTerritory(direct, caller, territory.id);
    }
  }
});
