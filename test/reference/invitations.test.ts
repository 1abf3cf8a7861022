/**
 * Tests that invitations reveal nothing to other companies and expire, that neither crashes nor concurrent attempts block the next
 * invitation, and who may change users. A company must always keep an owner.
 */
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { directoryOnly, type IdentityProvider } from "#shared/auth/identity-provider.ts";
import type { Role, StoredUser } from "#shared/auth/user-schema.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { presentUser } from "#shared/reference/invite.ts";
import { type NewUser, User } from "#shared/reference/user.ts";
import { getUser } from "#shared/reference/users.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { interrupted } from "../harness/killable.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import { changeUser, createUser, disableOrWithdraw, disableUser, updateUser } from "../harness/verbs.ts";
import { callerOf, newOwner } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const named = { firstName: "A", lastName: "B" };
const newUser = (email: string, role: Role = "sales"): NewUser => ({ email, ...named, role, permissions: [] });

let companies = 0;
async function scene() {
  const time = { now: Date.UTC(2026, 5, 1, 12) };
  const clock = { now: () => time.now };
  const context = contextOn(db.direct, clock);
  const [one, two] = [await newOwner(context), await newOwner(context)];
  return { context, clock, time, pool: memoryIdentities(), one, two, email: `invited-${companies++}@new.test` };
}

const DAY_MS = 24 * 3_600_000;
const shown = async (context: ApiContext, { companyId }: Caller, { id }: Pick<StoredUser, "id">): Promise<User> =>
  User.parse(presentUser(await getUser(context, companyId, id), context.clock.now()));
const taken = { code: "conflict", message: "This e-mail address is in use." };

/** Leaves out the fields that differ between any two invitations: ids, e-mail addresses and times. */
const shapeOf = ({ id: _, email: _email, createdAt: _c, updatedAt: _u, invitationExpiresAt, ...user }: User) => ({
  ...user,
  isEnding: invitationExpiresAt !== null,
});

test("the user's first request accepts the invitation, in one transaction", async () => {
  const { context, clock, time, pool, one, email } = await scene();
  const made = await createUser(context, pool, one, newUser(email));
  const invitationExpiresAt = new Date(time.now + 30 * DAY_MS).toISOString();
  expect(await shown(context, one, made)).toMatchObject({ invitation: "pending", invitationExpiresAt });
  const faulty = contextOn(db.table, clock);
  db.plan(() => pass);
  expect(await lookUpCaller(faulty, made.sub)).toMatchObject({ companyId: one.companyId, userId: made.id });
  expect(db.calls).toEqual(["GetItem", "GetItem", "TransactWriteItems"]);
  expect(await shown(context, one, made)).toMatchObject({ invitation: "accepted", invitationExpiresAt: null });
  time.now += 400 * DAY_MS;
  db.plan(() => pass);
  expect(await lookUpCaller(faulty, made.sub)).toMatchObject({ userId: made.id });
  expect(db.calls).toEqual(["GetItem"]);
  await expect(createUser(context, pool, one, newUser(email.toUpperCase()))).rejects.toMatchObject(taken);
});

describe("an address of another company's user", () => {
  test.each(["has signed in there", "is invited there"])("that %s looks like others and gets no mail", async (how) => {
    const { context, clock, time, pool, one, two, email } = await scene();
    const there = await createUser(context, pool, one, newUser(email));
    if (how.startsWith("has")) await lookUpCaller(context, there.sub);
    const seen: unknown[] = [];
    for (const address of [email, `fresh-${email}`]) {
      const faulty = contextOn(db.table, clock);
      db.plan(() => pass);
      const made = await createUser(faulty, pool, two, newUser(address));
      const steps: unknown[] = [[...db.calls], shapeOf(await shown(context, two, made))];
      await expect(createUser(context, pool, two, newUser(address))).rejects.toMatchObject(taken);
      await updateUser(context, two, made.id, { lastName: "C" });
      steps.push(shapeOf(await shown(context, two, made)));
      time.now += 31 * DAY_MS;
      steps.push(shapeOf(await shown(context, two, made)));
      time.now -= 31 * DAY_MS;
      await disableOrWithdraw(context, pool, two, made.id);
      steps.push(shapeOf(await shown(context, two, made)));
      await expect(disableOrWithdraw(context, pool, two, made.id)).rejects.toMatchObject({ code: "not_found" });
      await changeUser(context, pool, two, made.id, { isActive: true });
      steps.push(shapeOf(await shown(context, two, made)));
      seen.push(steps);
    }
    expect(seen[0]).toEqual(seen[1]);
    expect(pool.mails).toEqual([email, `fresh-${email}`, `fresh-${email}`]);
    // `there` is the user of the other company who already has this address. This user can still sign in, so the invitation has not taken
    // over the user's identity.
    expect(await lookUpCaller(context, there.sub)).toMatchObject({ companyId: one.companyId, userId: there.id });
  });

  test("takes as long to answer as a new address", async () => {
    const { context, pool, one, two, email } = await scene();
    const made = await createUser(context, pool, one, newUser(email));
    const slow = { ...pool, answersAfterMs: 400 };
    const works = [
      () => createUser(context, slow, two, newUser(email)),
      () => createUser(context, slow, two, newUser(`fresh-${email}`)),
      () => disableOrWithdraw(context, slow, one, made.id),
      () => changeUser(context, slow, one, made.id, { isActive: true }),
    ];
    for (const work of works) {
      let isAnswered = false;
      const answered = work().then(() => {
        isAnswered = true;
      });
      await wait(200);
      expect(isAnswered).toBe(false);
      await answered;
    }
  });

  test("is refused for the second of two concurrent invitations of a company", async () => {
    const { context, pool, one, two, email } = await scene();
    await createUser(context, pool, one, newUser(email));
    const tries = await Promise.allSettled([1, 2, 3].map(() => createUser(context, pool, two, newUser(email))));
    expect(tries.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected", "rejected"]);
  });

  test("goes to one of two companies that invite it at the same time, and the answers to both invitations look alike", async () => {
    const { context, clock, pool, one, two, email } = await scene();
    const both = Promise.withResolvers<void>();
    let inviting = 0;
    // Each invitation waits here for the other one, so both have read that the address is free before one of them commits.
    const racing: IdentityProvider = {
      ...pool,
      invite: async (address) => {
        if (++inviting === 2) both.resolve();
        await both.promise;
        return pool.invite(address);
      },
    };
    const invited = async (caller: Caller) => {
      const user = await createUser(contextOn(db.direct, clock), racing, caller, newUser(email));
      return { user, shape: shapeOf(await shown(context, caller, user)) };
    };
    const [first, second] = await Promise.all([invited(one), invited(two)]);
    expect(first.shape).toEqual(second.shape);
    const sub = pool.subjects.get(email) ?? "";
    const holders = [first.user, second.user].filter((user) => user.sub === sub);
    expect(holders).toHaveLength(1);
    const [{ id: userId, companyId } = { id: 0, companyId: 0 }] = holders;
    expect(await context.table.get(keys.email(email))).toMatchObject({ companyId, userId });
    expect(await lookUpCaller(context, sub)).toMatchObject({ companyId, userId });
    expect(inviting).toBe(2);
  });

  test("stays with its user if the inviter names a subject, and the new user gets the subject", async () => {
    const { context, pool, one, two, email } = await scene();
    const issuer = { ...pool, takesSubjects: true };
    await createUser(context, issuer, one, { ...newUser(email), sub: `${email}-1` });
    const made = await createUser(context, issuer, two, { ...newUser(email), sub: `${email}-2` });
    expect(await lookUpCaller(context, made.sub)).toMatchObject({ companyId: two.companyId, userId: made.id });
    expect(await context.table.get(keys.email(email))).toMatchObject({ companyId: one.companyId });
  });
});

describe("an invitation that is not accepted", () => {
  test("keeps the address for 30 days, and then the next company that invites it gets it", async () => {
    const { context, time, pool, one, two, email } = await scene();
    const first = await createUser(context, pool, one, newUser(email));
    time.now += 30 * DAY_MS - 1;
    // One millisecond before the first invitation expires, another company invites the address. This second invitation must send no
    // mail and must not take the address from the first company.
    const early = await createUser(context, pool, two, newUser(email));
    expect(early.sub).not.toBe(first.sub);
    expect(pool.mails).toEqual([email]);
    expect(await context.table.get(keys.email(email))).toMatchObject({ companyId: one.companyId, userId: first.id });
    await disableOrWithdraw(context, pool, two, early.id);
    time.now += 1;
    await expect(lookUpCaller(context, first.sub)).rejects.toMatchObject({ code: "unauthenticated" });
    const second = await createUser(context, pool, two, newUser(email));
    expect(second.sub).toBe(pool.subjects.get(email));
    expect(await lookUpCaller(context, second.sub)).toMatchObject({ companyId: two.companyId, userId: second.id });
    // The user of the first company has lost the address. Changes of this user must not change the rights of the new owner of the address.
    await updateUser(context, one, first.id, { role: "owner" });
    await disableUser(context, one, first.id);
    await disableOrWithdraw(context, pool, one, first.id);
    expect(pool.subjects.get(email)).toBe(second.sub);
    const identity = await context.table.get(keys.identity(second.sub));
    expect(identity).toMatchObject({ userId: second.id, rights: { role: "sales", isActive: true } });
    expect(await context.table.get(keys.email(email))).toMatchObject({ companyId: two.companyId, userId: second.id });
  });

  test("can be withdrawn: the provider deletes the user, the address is available, and assigned records keep the name", async () => {
    const { context, pool, one, two, email } = await scene();
    const first = await createUser(context, pool, one, newUser(email));
    await disableOrWithdraw(context, pool, one, first.id);
    expect(pool.subjects.has(email)).toBe(false);
    await expect(lookUpCaller(context, first.sub)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(await shown(context, one, first)).toMatchObject({ invitation: "withdrawn", isActive: false, email });
    const second = await createUser(context, pool, two, newUser(email));
    expect(await lookUpCaller(context, second.sub)).toMatchObject({ companyId: two.companyId });
    // The first company can invite the user again. The user is then shown as invited, but no mail is sent and nobody can accept the
    // invitation, because the address now belongs to the other company.
    await changeUser(context, pool, one, first.id, { isActive: true });
    expect(await shown(context, one, first)).toMatchObject({ invitation: "pending", isActive: true });
    expect(pool.mails).toEqual([email, email]);
  });

  test("can be sent again after a withdrawal or expiry, and the address can be invited as a new user", async () => {
    const { context, time, pool, one, email } = await scene();
    const made = await createUser(context, pool, one, newUser(email));
    await disableOrWithdraw(context, pool, one, made.id);
    await changeUser(context, pool, one, made.id, { isActive: true, role: "admin" });
    time.now += 31 * DAY_MS;
    expect(await shown(context, one, made)).toMatchObject({ invitation: "expired", role: "admin" });
    await changeUser(context, pool, one, made.id, { isActive: true });
    const { sub } = await getUser(context, one.companyId, made.id);
    expect(await lookUpCaller(context, sub)).toMatchObject({ userId: made.id, role: "admin" });
    // A user who has signed in once keeps the address, even while the user is disabled.
    await disableOrWithdraw(context, pool, one, made.id);
    expect(await shown(context, one, made)).toMatchObject({ invitation: "accepted", isActive: false });
    await expect(createUser(context, pool, one, newUser(email))).rejects.toMatchObject(taken);
    await changeUser(context, pool, one, made.id, { isActive: true });
    expect(await lookUpCaller(context, sub)).toMatchObject({ userId: made.id });

    const other = await createUser(context, pool, one, newUser(`other-${email}`));
    time.now += 31 * DAY_MS;
    const anew = await createUser(context, pool, one, newUser(`other-${email}`));
    expect(anew.id).not.toBe(other.id);
    await expect(changeUser(context, pool, one, other.id, { isActive: true })).rejects.toMatchObject(taken);
    expect(await lookUpCaller(context, anew.sub)).toMatchObject({ userId: anew.id });
  });
});

test("concurrent first requests accept the invitation once", async () => {
  const { context, clock, pool, one, email } = await scene();
  const made = await createUser(context, pool, one, newUser(email));
  const look = () => lookUpCaller(contextOn(db.direct, clock), made.sub);
  const found = await Promise.all(Array.from({ length: 10 }, look));
  for (const caller of found) expect(caller.userId).toBe(made.id);
  expect(await shown(context, one, made)).toMatchObject({ invitation: "accepted" });
});

test("a first request accepts the invitation although an admin changes the user again and again meanwhile", async () => {
  const { context, pool, one, email } = await scene();
  const made = await createUser(context, pool, one, newUser(email));
  let left = 6;
  const transact: typeof context.table.transact = async (writes) => {
    if (left-- > 0) await updateUser(context, one, made.id, { firstName: `B${left}` });
    return context.table.transact(writes);
  };
  const busy = { ...context, table: { ...context.table, transact } };
  expect(await lookUpCaller(busy, made.sub)).toMatchObject({ userId: made.id });
  expect(await shown(context, one, made)).toMatchObject({ invitation: "accepted" });
});

test("a change of a user whose invitation ends meanwhile changes no rights of the next user of the subject", async () => {
  const { context, time, pool, one, two, email } = await scene();
  const made = await createUser(context, pool, one, newUser(email));
  const next = { ...newUser(`next-${email}`), sub: made.sub };
  const table = interrupted(context.table, "transact", async () => {
    time.now += 31 * DAY_MS;
    await createUser(context, { ...pool, takesSubjects: true }, two, next);
  });
  await updateUser({ ...context, table }, one, made.id, { permissions: ["canViewAllProspects"] });
  const identity = await context.table.get(keys.identity(made.sub));
  expect(identity).toMatchObject({ companyId: two.companyId, rights: { permissions: [] } });
});

test("a company may send a limited number of invitations in a UTC day; refused ones do not count", async () => {
  const { context, time, pool, one, two, email } = await scene();
  const quota = { ...keys.quota(one.companyId, "INVITATIONS", "2026-06-01"), used: limits.invitationsPerDay - 2 };
  await context.table.batchPut([quota]);
  await createUser(context, pool, one, newUser(`1-${email}`));
  await expect(createUser(context, pool, one, newUser(`1-${email}`))).rejects.toMatchObject(taken);
  const race = await Promise.allSettled([2, 3, 4].map((n) => createUser(context, pool, one, newUser(`${n}-${email}`))));
  expect(race.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  const refused = createUser(context, pool, one, newUser(`5-${email}`));
  await expect(refused).rejects.toMatchObject({ code: "rate_limited", headers: { "Retry-After": String(12 * 3_600) } });
  expect(pool.mails).toHaveLength(2);
  await createUser(context, pool, two, newUser(`5-${email}`));
  time.now += 12 * 3_600_000;
  await createUser(context, pool, one, newUser(`6-${email}`));
});

test("after a crash at each call of an invitation, withdrawal or first sign-in, the next try completes it", async () => {
  const prepared = await scene();
  db.plan(() => pass);
  await createUser(contextOn(db.table, prepared.clock), prepared.pool, prepared.one, newUser(prepared.email));
  const calls = db.calls.length;
  for (let at = 1; at <= calls; at++) {
    const stage = await scene();
    const invite = () => createUser(contextOn(db.table, stage.clock), stage.pool, stage.one, newUser(stage.email));
    db.plan((_, number) => (number >= at ? serverError : pass));
    await expect(invite()).rejects.toThrow();
    db.plan(() => pass);
    const made = await invite();

    for (const work of ["sign in", "withdraw"] as const) {
      const run = async (context: ApiContext) =>
        work === "sign in"
          ? lookUpCaller(context, made.sub)
          : disableOrWithdraw(context, stage.pool, stage.one, made.id);
      db.plan((_, number) => (number >= at ? serverError : pass));
      await run(contextOn(db.table, stage.clock)).catch(() => undefined);
      db.plan(() => pass);
      await run(contextOn(db.table, stage.clock)).catch((error: unknown) => {
        // The crashed attempt had already completed the withdrawal, so the user no longer exists.
        expect(error).toMatchObject({ code: "not_found" });
      });
    }
    // The user had signed in before the withdrawal, so the withdrawal only disabled the user.
    expect(await shown(stage.context, stage.one, made)).toMatchObject({ invitation: "accepted", isActive: false });
  }
});

test("owners who disable or demote each other at once leave one owner", async () => {
  const { context, pool, one, email } = await scene();
  for (let round = 0; round < 8; round++) {
    const pair = await Promise.all(
      ["a", "b"].map((it) => createUser(context, pool, one, newUser(`${it}${round}-${email}`, "owner"))),
    );
    const [a, b] = pair.map(callerOf);
    if (a === undefined || b === undefined) throw new Error("no pair");
    const demote = (caller: Caller, id: number) => updateUser(context, caller, id, { role: "sales" });
    const disable = (caller: Caller, id: number) => disableUser(context, caller, id);
    const [first, second] = round % 2 === 0 ? [demote, disable] : [disable, disable];
    const results = await Promise.allSettled([first(a, b.userId), second(b, a.userId)]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const after = await Promise.all(pair.map(({ id }) => getUser(context, one.companyId, id)));
    expect(after.filter(({ role, isActive }) => role === "owner" && isActive)).toHaveLength(1);
  }
});

test("a user who lost a role within the last minute can neither use nor restore it", async () => {
  const { context, pool, one, email } = await scene();
  const admin = await createUser(context, pool, one, newUser(`admin-${email}`, "admin"));
  const rep = await createUser(context, pool, one, newUser(`rep-${email}`));
  const stale = callerOf(admin);
  await updateUser(context, one, admin.id, { role: "sales" });
  const denied = { code: "permission_denied" };
  await expect(updateUser(context, stale, admin.id, { role: "admin" })).rejects.toMatchObject(denied);
  await expect(updateUser(context, stale, rep.id, { role: "admin" })).rejects.toMatchObject(denied);
  await expect(disableUser(context, stale, rep.id)).rejects.toMatchObject(denied);
  await expect(createUser(context, pool, stale, newUser(`x-${email}`))).rejects.toMatchObject(denied);
  await disableUser(context, one, admin.id);
  const late = updateUser(context, { ...stale, role: "sales" }, admin.id, { isActive: true });
  await expect(late).rejects.toMatchObject(denied);
});

test("with an external issuer the inviter can name the subject; with the service's user pool a named subject is refused", async () => {
  const { context, pool, one, email } = await scene();
  const sub = `auth0|${email}`;
  const made = await createUser(context, directoryOnly, one, { ...newUser(`a-${email}`), sub });
  const found = { companyId: one.companyId, userId: made.id, role: "sales" };
  expect(await lookUpCaller(context, sub)).toMatchObject(found);

  const again = createUser(context, directoryOnly, one, { ...newUser(`b-${email}`), sub });
  await expect(again).rejects.toMatchObject({ code: "conflict", message: "This subject is in use." });
  expect(await createUser(context, directoryOnly, one, newUser(`b-${email}`))).not.toMatchObject({ sub });

  const inPool = createUser(context, pool, one, { ...newUser(`c-${email}`), sub: `pool|${email}` });
  await expect(inPool).rejects.toMatchObject({ code: "validation_failed", faults: [{ pointer: "/sub" }] });
  expect(pool.subjects.size).toBe(0);
});

test("the owner of a new company has the e-mail address and the subject of no other user", async () => {
  const { context, email } = await scene();
  const owner = { ...named, email: `Twice-${email}`, sub: `subject-${email}` };
  await createCompany(context, { name: "X", owner });
  const again = [
    { ...owner, sub: `other-${email}`, email: `twice-${email.toUpperCase()}` },
    { ...owner, email: `other-${email}` },
  ];
  for (const taken of again) {
    await expect(createCompany(context, { name: "Y", owner: taken })).rejects.toMatchObject({ code: "conflict" });
  }
});
