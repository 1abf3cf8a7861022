/** Tests who may change users, also with concurrent requests, and who chooses their token subjects. A company must always keep an owner. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { directoryOnly } from "#shared/auth/identity-provider.ts";
import type { Role, StoredUser } from "#shared/auth/user-schema.ts";
import { contextOn } from "#shared/context.ts";
import type { NewUser } from "#shared/reference/user.ts";
import { getUser } from "#shared/reference/users.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import { createUser, disableUser, updateUser } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const named = { firstName: "A", lastName: "B" };
const newUser = (email: string, role: Role = "sales"): NewUser => ({ email, ...named, role, permissions: [] });
const callerOf = ({ companyId, id, role }: Pick<StoredUser, "companyId" | "id" | "role">): Caller => ({
  companyId,
  userId: id,
  role,
  permissions: [],
});

let companies = 0;
async function company() {
  const context = contextOn(db.direct);
  return { context, owner: await newOwner(context), name: `users-${companies++}` };
}

test("owners who disable or demote each other at once leave one owner", async () => {
  const { context, owner, name } = await company();
  for (let round = 0; round < 8; round++) {
    const pair = await Promise.all(
      ["a", "b"].map((it) =>
        createUser(context, memoryIdentities(), owner, newUser(`${it}${round}@${name}.test`, "owner")),
      ),
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
  const admin = await createUser(context, memoryIdentities(), owner, newUser(`admin@${name}.test`, "admin"));
  const rep = await createUser(context, memoryIdentities(), owner, newUser(`rep@${name}.test`));
  const stale = callerOf(admin);
  await updateUser(context, owner, admin.id, { role: "sales" });
  const denied = { code: "permission_denied" };
  await expect(updateUser(context, stale, admin.id, { role: "admin" })).rejects.toMatchObject(denied);
  await expect(updateUser(context, stale, rep.id, { role: "admin" })).rejects.toMatchObject(denied);
  await expect(disableUser(context, stale, rep.id)).rejects.toMatchObject(denied);
  await expect(createUser(context, memoryIdentities(), stale, newUser(`x@${name}.test`))).rejects.toMatchObject(denied);
  await disableUser(context, owner, admin.id);
  const late = updateUser(context, { ...stale, role: "sales" }, admin.id, { isActive: true });
  await expect(late).rejects.toMatchObject(denied);
});

test("with an external issuer the inviter can name the subject; with the service's user pool a named subject is refused", async () => {
  const { context, owner, name } = await company();
  const sub = `auth0|${name}`;
  const made = await createUser(context, directoryOnly, owner, { ...newUser(`a@${name}.test`), sub });
  const found = { companyId: owner.companyId, userId: made.id, role: "sales" };
  expect(await lookUpCaller(context, sub)).toMatchObject(found);

  const again = createUser(context, directoryOnly, owner, { ...newUser(`b@${name}.test`), sub });
  await expect(again).rejects.toMatchObject({ code: "conflict", message: "This subject is in use." });
  expect(await createUser(context, directoryOnly, owner, newUser(`b@${name}.test`))).not.toMatchObject({ sub });

  const pool = memoryIdentities();
  const inPool = createUser(context, pool, owner, { ...newUser(`c@${name}.test`), sub: `pool|${name}` });
  await expect(inPool).rejects.toMatchObject({ code: "validation_failed", faults: [{ pointer: "/sub" }] });
  expect(pool.subjects.size).toBe(0);
});
