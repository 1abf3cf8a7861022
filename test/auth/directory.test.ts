/** Tests that each look-up of a caller reads the user's current role and permissions from the table and never from a cache. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { directoryOnly } from "#shared/auth/identity-provider.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { contextOn } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { createUser, updateUser } from "../harness/verbs.ts";

const db = faultyDynamoDb();

const callerOf = ({ companyId, id, role }: Pick<StoredUser, "companyId" | "id" | "role">): Caller => ({
  companyId,
  userId: id,
  role,
  permissions: [],
});

test("each look-up returns the current rights, so a disabled user is rejected until the user is enabled again", async () => {
  const context = contextOn(db.table);
  const owner = { email: "owner@x.test", firstName: "A", lastName: "B", sub: "subject-1" };
  const { company, owner: made } = await createCompany(context, { name: "X", owner });

  db.plan(() => pass);
  for (let i = 0; i < 2; i++) {
    expect(await lookUpCaller(context, "subject-1")).toMatchObject({ companyId: company.id, role: "owner" });
  }
  expect(db.calls).toEqual(["GetItem", "GetItem"]);

  const secondOwner = { ...owner, email: "second@x.test", sub: "subject-1b", role: "owner" as const, permissions: [] };
  const second = await createUser(context, directoryOnly, callerOf(made), secondOwner);
  await updateUser(context, callerOf(second), made.id, { isActive: false });
  await expect(lookUpCaller(context, "subject-1")).rejects.toMatchObject({ code: "unauthenticated" });
  const permissions = ["canViewAllProspects" as const];
  await updateUser(context, callerOf(second), made.id, { isActive: true, role: "sales", permissions });
  const caller = { companyId: company.id, userId: made.id, role: "sales", permissions };
  expect(await lookUpCaller(context, "subject-1")).toEqual(caller);
});

test("an unknown subject is refused, and an e-mail address or a subject belongs to one user only", async () => {
  const context = contextOn(db.table);
  await expect(lookUpCaller(context, "nobody")).rejects.toBeInstanceOf(ApiError);
  const owner = { email: "Twice@x.test", firstName: "A", lastName: "B", sub: "subject-2" };
  await createCompany(context, { name: "X", owner });
  const again = [
    { ...owner, sub: "subject-3", email: "twice@X.test" },
    { ...owner, email: "other@x.test" },
  ];
  for (const taken of again) {
    await expect(createCompany(context, { name: "Y", owner: taken })).rejects.toMatchObject({ code: "conflict" });
  }
});
