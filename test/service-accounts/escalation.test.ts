/**
 * Tests that after any sequence of changes of users, service accounts and API keys, every key has exactly the rights that a simple model
 * computes. The callers who make the changes may have outdated rights, because API Gateway caches authorizer results.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller, Rights } from "#shared/auth/caller.ts";
import type { Scope } from "#shared/auth/scopes.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import * as apiKeys from "#shared/reference/api-keys.ts";
import { handler } from "../../functions/api-keys/rotate.ts";
import { commanded } from "../harness/commanded.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { newStage, type Stage } from "./stage.ts";

const db = faultyDynamoDb();
const DAY_MS = 86_400_000;

interface User {
  readonly id: number;
  rights: Rights;
  isActive: boolean;
}

interface Key {
  readonly id: string;
  readonly text: string;
  readonly account: User;
  readonly scopes: readonly Scope[];
  readonly createdMs: number;
  endMs: number;
  isRevoked: boolean;
  /** The users and service accounts whose rights limit the rights of the key, for example its creator. */
  sponsors: ReadonlySet<User>;
  /** The lowest rights that the sponsors have had since they became sponsors of the key. */
  most: Rights;
  orphanedMs: number;
}

const ranks = ["sales", "admin", "owner"];
const holds = ({ role, permissions }: Rights, one: Permission): boolean =>
  role !== "sales" || permissions.includes(one);
const lower = (one: Rights, other: Rights): Rights => ({
  role: ranks.indexOf(one.role) < ranks.indexOf(other.role) ? one.role : other.role,
  permissions: Permission.options.filter((permission) => holds(one, permission) && holds(other, permission)),
});
const sorted = (scopes: readonly string[]): string[] => scopes.toSorted();

class Model {
  readonly keys: Key[] = [];
  nowMs = 0;

  isAlive({ isRevoked, account, endMs, orphanedMs }: Key): boolean {
    const end = Math.min(endMs, orphanedMs + limits.orphanedKeyMs);
    return !isRevoked && account.isActive && this.nowMs < end;
  }

  rightsOf(key: Key): Rights | undefined {
    return this.isAlive(key) ? lower(key.account.rights, key.most) : undefined;
  }

  /** Returns the scopes that the key has now. A key whose creator has lost rights (an orphaned key) must not create keys. */
  scopesOf({ scopes, orphanedMs }: Key): Scope[] {
    return scopes.filter((scope) => orphanedMs === Number.POSITIVE_INFINITY || scope !== "keys:manage");
  }

  change(user: User, rights: Rights, isActive: boolean): void {
    const before = user.rights;
    const isWorse = (user.isActive && !isActive) || ranks.indexOf(rights.role) < ranks.indexOf(before.role);
    user.rights = rights;
    user.isActive = isActive;
    for (const key of this.keys.filter(({ sponsors }) => sponsors.has(user))) {
      key.most = lower(key.most, rights);
      if (isWorse) key.orphanedMs = Math.min(key.orphanedMs, this.nowMs);
    }
  }
}

const RIGHTS = fc.record({
  role: fc.constantFrom(...Role.options),
  permissions: fc.constantFrom<Permission[][]>(["canViewAllProspects"], ["canViewAllProspects", "canManageProspects"]),
});
const SCOPES = fc.constantFrom<Scope[][]>(["keys:manage"], ["keys:manage", "prospects:read"], ["prospects:read"]);
const pick = fc.nat(1_000);
const by = pick;
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("person"), pick, rights: RIGHTS, isActive: fc.boolean() }) },
  fc.record({ do: fc.constant("new account"), by, rights: RIGHTS }),
  fc.record({ do: fc.constant("account"), by, pick, rights: RIGHTS }),
  fc.record({ do: fc.constant("delete account"), by, pick }),
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("new key"), by, pick, scopes: SCOPES, days: fc.constantFrom(1, 40, 366) }),
  },
  fc.record({
    do: fc.constant("rotate"),
    by,
    pick,
    overlapSeconds: fc.constantFrom(0, 3_600, limits.keyOverlapSeconds),
  }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant("take over"), by, pick }) },
  fc.record({ do: fc.constant("revoke"), by, pick }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant("sign in"), pick }) },
  fc.record({ do: fc.constant("wait"), days: fc.constantFrom(1, 20, 31) }),
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

interface Session {
  readonly caller: Caller;
  /** The user who has signed in, or the key that the program uses. */
  readonly who: User | Key;
}
const isKey = (who: User | Key): who is Key => "text" in who;

class Run {
  readonly model = new Model();
  readonly people: User[] = [];
  readonly accounts: User[] = [];
  readonly sessions: Session[] = [];
  readonly #stage: Stage;
  madeByKeys = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.model.nowMs = stage.clock.ms;
    this.sessions.push({ caller: stage.owner, who: userOf(stage.owner) });
  }

  async begin(): Promise<void> {
    for (const role of ["owner", "admin", "admin"] as const) {
      const caller = await this.#stage.newAdmin(role);
      const who = userOf(caller);
      this.people.push(who);
      this.sessions.push({ caller, who });
    }
    await this.step({ do: "new account", by: 0, rights: { role: "owner", permissions: [] } });
    for (let i = 0; i < 2; i++) {
      await this.step({ do: "new account", by: 0, rights: { role: "admin", permissions: [] } });
    }
    await this.step({ do: "new key", by: 2, pick: 1, scopes: ["keys:manage"], days: 366 });
    // Session 4 belongs to the new key. In it, the key of one account creates a key of another account.
    await this.step({ do: "new key", by: 4, pick: 2, scopes: ["keys:manage"], days: 366 });
    expect(this.madeByKeys).toBe(1);
  }

  /** Returns a session that may manage keys, according to the cached rights of its caller. */
  #session(by: number): Session {
    const open = this.sessions.filter(
      ({ caller: { role, key } }) => role !== "sales" && (key === undefined || key.scopes.includes("keys:manage")),
    );
    return open[by % open.length] ?? expect.fail("no session");
  }

  /** Returns the sponsors (who limit the rights) and the rights of a key that the session creates. */
  #sponsorship({ caller, who }: Session, scopes: readonly Scope[]): Pick<Key, "sponsors" | "most" | "orphanedMs"> {
    if (!isKey(who)) {
      expect([who.isActive, who.rights.role]).toEqual([true, caller.role]);
      return { sponsors: new Set([who]), most: who.rights, orphanedMs: Number.POSITIVE_INFINITY };
    }
    const now = this.model.rightsOf(who) ?? expect.fail(`the dead key ${who.id} has made a key`);
    expect(ranks.indexOf(now.role)).toBeGreaterThanOrEqual(ranks.indexOf(caller.role));
    expect(scopes.filter((scope) => !who.scopes.includes(scope))).toEqual([]);
    expect(who.orphanedMs).toBe(Number.POSITIVE_INFINITY);
    this.madeByKeys++;
    const sponsors = new Set([who.account, ...who.sponsors]);
    return { sponsors, most: lower(caller, now), orphanedMs: who.orphanedMs };
  }

  async #add(key: Omit<Key, "createdMs" | "isRevoked">): Promise<void> {
    const added = { ...key, createdMs: this.model.nowMs, isRevoked: false };
    this.model.keys.push(added);
    if (this.model.isAlive(added)) this.sessions.push({ caller: await this.#stage.signIn(key.text), who: added });
  }

  /** Executes the step, and changes the model unless the service refuses the step. */
  async step(step: Step): Promise<void> {
    const { context, owner, clock } = this.#stage;
    const { model } = this;
    const { companyId } = owner;
    const chosen = <T>(list: readonly T[], pick: number): T | undefined => list[pick % Math.max(1, list.length)];
    switch (step.do) {
      case "wait":
        clock.ms += step.days * DAY_MS;
        model.nowMs = clock.ms;
        return;
      case "person": {
        const person = chosen(this.people, step.pick);
        if (person === undefined) return;
        await verbs.updateUser(context, owner, person.id, { ...step.rights, isActive: step.isActive });
        return model.change(person, step.rights, step.isActive);
      }
      case "sign in": {
        const person = chosen(this.people, step.pick);
        if (person?.isActive === true) {
          this.sessions.push({ caller: { companyId, userId: person.id, ...person.rights }, who: person });
        }
        const key = chosen(
          model.keys.filter((one) => model.isAlive(one)),
          step.pick,
        );
        if (key !== undefined) this.sessions.push({ caller: await this.#stage.signIn(key.text), who: key });
        return;
      }
    }
    const session = this.#session(step.by);
    const { caller } = session;
    if (step.do === "new account") {
      const { id, role, permissions } = await verbs.createAccount(context, caller, { name: "n", ...step.rights });
      this.accounts.push({ id, rights: { role, permissions }, isActive: true });
      return;
    }
    const account = chosen(this.accounts, step.pick);
    if (account === undefined) return;
    switch (step.do) {
      case "account":
        await verbs.changeAccount(context, caller, account.id, step.rights);
        return model.change(account, step.rights, true);
      case "delete account":
        await verbs.deleteAccount(context, caller, account.id);
        return model.change(account, account.rights, false);
      case "new key": {
        const { scopes } = step;
        const endMs = model.nowMs + step.days * DAY_MS;
        const fields = { name: "n", scopes, expiresAt: iso(endMs) };
        const made = await verbs.createKey(context, caller, account.id, fields);
        if (account.rights.role === "owner") expect(caller.role).toBe("owner");
        const { id, key: text } = made;
        return this.#add({ id, text, account, scopes, endMs, ...this.#sponsorship(session, scopes) });
      }
    }
    const key = chosen(model.keys, step.pick);
    if (key === undefined) return;
    switch (step.do) {
      case "revoke":
        await verbs.revokeKey(context, caller, key.account.id, key.id);
        key.isRevoked = true;
        return;
      case "take over": {
        await verbs.takeOverKey(context, caller, key.account.id, key.id);
        expect(isKey(session.who)).toBe(false);
        expect(model.isAlive(key)).toBe(true);
        Object.assign(key, this.#sponsorship(session, key.scopes));
        return;
      }
      case "rotate": {
        const made = await verbs.rotateKey(context, caller, key.account.id, key.id, step);
        const { account, scopes } = key;
        const endMs = model.nowMs + key.endMs - key.createdMs;
        // The rights are computed before the old key ends, because a key may replace itself.
        const sponsorship = this.#sponsorship(session, scopes);
        key.endMs = Math.min(key.endMs, model.nowMs + step.overlapSeconds * 1_000);
        return this.#add({ id: made.id, text: made.key, account, scopes, endMs, ...sponsorship });
      }
    }
  }

  async check(): Promise<void> {
    for (const key of this.model.keys) {
      const expected = this.model.rightsOf(key);
      const actual = await this.#stage.signIn(key.text).catch((error: unknown) => {
        if (error instanceof ApiError && error.code === "unauthenticated") return undefined;
        throw error;
      });
      const seen = actual && { role: actual.role, permissions: sorted(actual.permissions), scopes: actual.key?.scopes };
      expect(seen, `key ${key.id}`).toEqual(
        expected && {
          role: expected.role,
          permissions: sorted(expected.permissions),
          scopes: this.model.scopesOf(key),
        },
      );
    }
  }
}

const userOf = ({ userId, role, permissions }: Caller): User => ({
  id: userId,
  rights: { role, permissions },
  isActive: true,
});

test("a key gets no secret of a new key by the idempotency key of another key of its account", async () => {
  const { context, signIn, newAccount, newKey } = await newStage(db);
  const account = await newAccount();
  const rotated = async ({ key, id }: { readonly key: string; readonly id: string }) => {
    const caller = await signIn(key);
    const overlap = { overlapSeconds: 60 };
    const rotate = (own: ApiContext) => apiKeys.rotateKey(own, caller, account, id, overlap);
    return commanded(context, caller, keyedPost("once"), rotate, handler.contract);
  };
  const wide = await newKey(account, undefined, { scopes: ["keys:manage", "prospects:delete"] });
  const narrow = await newKey(account, undefined, { scopes: ["keys:manage"] });
  const { replayed, value } = await rotated(wide);
  expect(replayed).toBe(false);
  await expect(rotated({ key: narrow.key, id: wide.id })).rejects.toMatchObject({ code: "insufficient_scope" });
  expect(await rotated(wide)).toEqual({ replayed: true, value });
});

test("no sequence of changes gives a key more rights than its sponsors and its account have", {
  tags: ["sized"],
}, async () => {
  const steps = fc.array(step, { minLength: 10, maxLength: sized({ short: 20, wide: 40 }) });
  await fc.assert(
    fc.asyncProperty(steps, async (chosen) => {
      const run = new Run(await newStage(db));
      await run.begin();
      for (const one of chosen) {
        await run.step(one).catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
        });
        await run.check();
      }
    }),
    // fast-check does not shrink a failing sequence, because this would take minutes.
    { numRuns: sized({ short: 6, wide: 100 }), endOnFailure: true },
  );
});
