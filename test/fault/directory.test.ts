/** A user's rights are looked up afresh each minute: whoever is disabled is out by then, whatever the token says. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { createCompany } from "#shared/companies/create.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError } from "#shared/http/problem.ts";
import { worldOn } from "#shared/world.ts";
import { type FaultyDynamoDb, pass, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

test("a disabled user is out within 60 s; until then one look-up serves all requests", async () => {
  let now = Date.UTC(2026, 0, 1);
  const world = worldOn(db.table, { now: () => now });
  const owner = { email: "owner@x.test", firstName: "A", lastName: "B", sub: "subject-1" };
  const { company, owner: made } = await createCompany(world, { name: "X", owner });

  db.plan(() => pass);
  for (let i = 0; i < 5; i++) {
    expect(await lookUpCaller(world, "subject-1")).toMatchObject({ companyId: company.id, role: "owner" });
  }
  expect(db.calls).toEqual(["GetItem", "GetItem"]);

  const user = keys.user(company.id, made.id);
  await db.direct.write({ update: user, change: { set: { isActive: false } } });
  now += 60_000;
  await expect(lookUpCaller(world, "subject-1")).rejects.toMatchObject({ code: "unauthenticated" });
  // Nor is the refusal kept: who is enabled again is in again.
  await db.direct.write({ update: user, change: { set: { isActive: true, role: "sales" } } });
  expect(await lookUpCaller(world, "subject-1")).toMatchObject({ role: "sales" });
});

test("an unknown subject is refused, and one e-mail address or subject serves one user only", async () => {
  const world = worldOn(db.table);
  await expect(lookUpCaller(world, "nobody")).rejects.toBeInstanceOf(ApiError);
  const owner = { email: "Twice@x.test", firstName: "A", lastName: "B", sub: "subject-2" };
  await createCompany(world, { name: "X", owner });
  const again = [
    { ...owner, sub: "subject-3", email: "twice@X.test" },
    { ...owner, email: "other@x.test" },
  ];
  for (const taken of again) {
    await expect(createCompany(world, { name: "Y", owner: taken })).rejects.toMatchObject({ code: "conflict" });
  }
});
