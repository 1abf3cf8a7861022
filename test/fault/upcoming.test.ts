/** The appointments that a prospect's row keeps for lists: the soonest to come, whatever is written and as time passes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAppointment, deleteAppointment, updateAppointment } from "#shared/appointments/appointments.ts";
import { keys } from "#shared/db/keys.ts";
import { ListQuery, listProspects } from "#shared/prospects/list.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { createProspect } from "#shared/prospects/write.ts";
import type { World } from "#shared/world.ts";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "./faulty-dynamodb.ts";
import { newCompany, warmFunction } from "./warm-function.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
const newFunction = (): World => warmFunction(db, { now: () => now.ms });
const hour = (n: number): string => new Date(now.ms + n * 3_600_000).toISOString();

test("upcoming appointments are shown whatever the row has room for, and as time passes", async () => {
  const company = await newCompany(newFunction());
  const world = newFunction();
  const { id } = await createProspect(world, company.caller, { name: "n" });
  const shown = async () =>
    (await listProspects(world, company.caller, ListQuery.parse({}))).items[0]?.appointments.map(({ title }) => title);
  const make = (title: string, n: number, notes = "") =>
    createAppointment(world, company.caller, id, { title, startAt: hour(n), notes });
  const row = async () => StoredProspect.parse(await world.table.get(keys.prospect(company.caller.companyId, id)));

  await make("five", 5);
  const two = await make("two", 2);
  await make("nine", 9);
  await make("seven", 7);
  expect(await shown()).toEqual(["two"]);
  expect(await row()).toMatchObject({ hasMoreUpcoming: true, upcoming: { length: 3 } });

  await deleteAppointment(world, company.caller, two.id);
  expect(await shown()).toEqual(["five"]);
  expect(await row()).toMatchObject({ hasMoreUpcoming: false, upcoming: { length: 3 } });

  const long = await make("long", 1, "é".repeat(1_500));
  expect(await row()).toMatchObject({ hasMoreUpcoming: true, upcoming: [] });
  expect(await shown()).toEqual(["long"]);
  await updateAppointment(world, company.caller, long.id, { status: "completed" });
  expect(await row()).toMatchObject({ hasMoreUpcoming: false, upcoming: { length: 3 } });

  await make("four", 4);
  now.ms += 8 * 3_600_000;
  // All three that the row keeps have passed.
  expect(await shown()).toEqual(["nine"]);
  now.ms += 2 * 3_600_000;
  expect(await shown()).toEqual([]);
});

test("appointments that are made at once are all in the row", async () => {
  const company = await newCompany(newFunction());
  const world = newFunction();
  const { id } = await createProspect(world, company.caller, {});
  await Promise.all(
    [3, 1, 2].map((n) => createAppointment(newFunction(), company.caller, id, { title: `${n}`, startAt: hour(n) })),
  );
  const row = StoredProspect.parse(await world.table.get(keys.prospect(company.caller.companyId, id)));
  expect(row.upcoming.map(({ title }) => title)).toEqual(["1", "2", "3"]);
  expect(row.version).toBe(4);
});
