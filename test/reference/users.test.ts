/**
 * Tests the user directory with faults and concurrent requests. An interrupted attempt must never block the next attempt, and a company
 * must always keep an owner.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import { directoryOnly } from "#shared/auth/identity-provider.ts";
import type { Role, StoredUser } from "#shared/auth/user-schema.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import type { NewUser } from "#shared/reference/user.ts";
import { getUser, listUsers } from "#shared/reference/users.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { createUser, disableUser, updateUser } from "../harness/verbs.ts";

const db = faultyDynamoDb();

/** Simulates a user pool in which an e-mail address always has the same subject. */
function userList(): IdentityProvider & { readonly subjects: Map<string, string> } {
  const subjects = new Map<string, string>();
  return {
    subjects,
    takesSubjects: false,
    answersAfterMs: 0,
    withdraw: async (email) => {
      subjects.delete(email);
    },
    invite: async (email) => {
      const sub = subjects.get(email) ?? randomUUID();
      subjects.set(email, sub);
      return { sub };
    },
  };
}

const newUser = (email: string, role: Role = "sales"): NewUser => ({
  email,
  firstName: "A",
  lastName: "B",
  role,
  permissions: [],
});
const callerOf = ({ companyId, id, role }: StoredUser): Caller => ({ companyId, userId: id, role, permissions: [] });

let companies = 0;
async function company(): Promise<{ context: ApiContext; owner: Caller; name: string }> {
  const context = contextOn(db.direct);
  const name = `users-${companies++}`;
  const made = await createCompany(context, {
    name,
    owner: { email: `${name}@x.test`, firstName: "A", lastName: "B", sub: name },
  });
  return { context, owner: callerOf(made.owner), name };
}

test("a crash between the invitation and the write of the rows does not block the next try", async () => {
  const { context, owner, name } = await company();
  const pool = userList();
  const input = newUser(`new@${name}.test`);
  db.plan((operation) =>
    operation === "TransactWriteItems" ? { kind: "error", code: "ValidationException", status: 400 } : pass,
  );
  await expect(createUser(contextOn(db.table), pool, owner, input)).rejects.toThrow();
  expect([...pool.subjects.keys()]).toEqual([input.email]);
  expect(await listUsers(context, owner.companyId)).toHaveLength(1);
  const made = await createUser(context, pool, owner, input);
  expect(await getUser(context, owner.companyId, made.id)).toMatchObject({
    ...input,
    sub: pool.subjects.get(input.email),
  });
});

test("an e-mail address in use is refused in any letter case before the invitation, and another company learns nothing", async () => {
  const { context, owner, name } = await company();
  const elsewhere = await company();
  const pool = userList();
  await createUser(context, pool, owner, newUser(`One@${name}.test`));
  await expect(createUser(context, pool, owner, newUser(`oNE@${name}.test`))).rejects.toMatchObject({
    code: "conflict",
    message: "This e-mail address is in use.",
  });
  await createUser(context, pool, elsewhere.owner, newUser(`oNE@${name}.test`));
  expect(pool.subjects.size).toBe(1);
  const callers = [owner, elsewhere.owner, owner, elsewhere.owner, owner];
  const tries = await Promise.allSettled(
    callers.map((caller) => createUser(context, userList(), caller, newUser(`two@${name}.test`))),
  );
  const made = tries.flatMap((result) => (result.status === "fulfilled" ? [result.value.companyId] : []));
  expect(made.toSorted()).toEqual([owner.companyId, elsewhere.owner.companyId].toSorted());
});

test("owners who disable or demote each other at once leave one owner", async () => {
  const { context, owner, name } = await company();
  for (let round = 0; round < 8; round++) {
    const pair = await Promise.all(
      ["a", "b"].map((it) => createUser(context, userList(), owner, newUser(`${it}${round}@${name}.test`, "owner"))),
    );
    const [a, b] = pair.map(callerOf);
    if (a === undefined || b === undefined) throw new Error("no pair");
    const demote = (caller: Caller, id: number) => updateUser(context, caller, id, { role: "sales" });
    const disable = (caller: Caller, id: number) => disableUser(context, caller, id);
    const [first, second] = round % 2 === 0 ? [demote, disable] : [disable, disable];
    const results = await Promise.allSettled([first(a, b.userId), second(b, a.userId)]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const after = await Promise.all(pair.map(({ id }) => getUser(context, owner.companyId, id)));
    expect(after.filter(({ role, isActive }) => role === "owner" && isActive)).toHaveLength(1);
  }
});

test("a user who lost a role within the last minute can neither use nor restore it", async () => {
  const { context, owner, name } = await company();
  const admin = await createUser(context, userList(), owner, newUser(`admin@${name}.test`, "admin"));
  const rep = await createUser(context, userList(), owner, newUser(`rep@${name}.test`));
  const stale = callerOf(admin);
  await updateUser(context, owner, admin.id, { role: "sales" });
  const denied = { code: "permission_denied" };
  await expect(updateUser(context, stale, admin.id, { role: "admin" })).rejects.toMatchObject(denied);
  await expect(updateUser(context, stale, rep.id, { role: "admin" })).rejects.toMatchObject(denied);
  await expect(disableUser(context, stale, rep.id)).rejects.toMatchObject(denied);
  await expect(createUser(context, userList(), stale, newUser(`x@${name}.test`))).rejects.toMatchObject(denied);
  await disableUser(context, owner, admin.id);
  await expect(updateUser(context, { ...stale, role: "sales" }, admin.id, { isActive: true })).rejects.toMatchObject(
    denied,
  );
});

test("with an external issuer the inviter can name the subject; with the service's user pool a named subject is refused", async () => {
  const { context, owner, name } = await company();
  const sub = `auth0|${name}`;
  const made = await createUser(context, directoryOnly, owner, { ...newUser(`a@${name}.test`), sub });
  expect(await lookUpCaller(context, sub)).toMatchObject({
    companyId: owner.companyId,
    userId: made.id,
    role: "sales",
  });

  const again = createUser(context, directoryOnly, owner, { ...newUser(`b@${name}.test`), sub });
  await expect(again).rejects.toMatchObject({ code: "conflict", message: "This subject is in use." });
  expect(await createUser(context, directoryOnly, owner, newUser(`b@${name}.test`))).not.toMatchObject({ sub });

  const pool = userList();
  const inPool = createUser(context, pool, owner, { ...newUser(`c@${name}.test`), sub: `pool|${name}` });
  await expect(inPool).rejects.toMatchObject({ code: "validation_failed", faults: [{ pointer: "/sub" }] });
  expect(pool.subjects.size).toBe(0);
});
