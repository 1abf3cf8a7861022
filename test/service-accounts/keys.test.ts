/**
 * Tests the limits of service accounts and of their API keys, each at its value and one beyond, which rows the authentication of an API
 * key reads and writes, and that requests with a refused key get the same error, whatever the reason.
 */
import { describe, expect, test } from "vitest";
import { keyIn, newKey as newText, ringOf } from "#shared/auth/api-key.ts";
import { authorizer } from "#shared/auth/authorizer.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { listKeys } from "#shared/reference/api-keys.ts";
import { Rotation } from "#shared/reference/service-account-schema.ts";
import { getUser } from "#shared/reference/users.ts";
import { resume, suspend } from "../../infra/cli/company/suspension.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { conflict, type Fault, pass, serverError, throttle } from "../harness/faulty-dynamodb.ts";
import { createAccount, deleteAccount, revokeKey, rotateKey, takeOverKey, updateUser } from "../harness/verbs.ts";
import { codeOf, MANAGING, newStage, newStageWithKey, START, type Stage, type StageWithKey } from "./stage.ts";

const db = faultyDynamoDb();
const account = { name: "program", role: "admin" as const, permissions: [] };

/** Expects that the key works one millisecond before its end, and is refused at its end. */
async function expectEnd({ clock, signIn }: Stage, key: string, endMs: number): Promise<void> {
  clock.ms = endMs - 1;
  await signIn(key);
  clock.ms = endMs;
  expect(await codeOf(signIn(key))).toBe("unauthenticated");
}

test(`a company has at most ${limits.serviceAccounts} service accounts, and deleted ones do not count`, async () => {
  const { context, owner } = await newStage(db);
  const create = () => createAccount(context, owner, account);
  const { id } = await create();
  for (let i = 1; i < limits.serviceAccounts; i++) await create();
  expect(await codeOf(create())).toBe("conflict");
  await deleteAccount(context, owner, id);
  await create();
  expect(await codeOf(create())).toBe("conflict");
});

test(`a company creates at most ${limits.serviceAccountsEver} service accounts, deleted ones included`, async () => {
  const { context, owner, newAccount } = await newStage(db);
  const first = await getUser(context, owner.companyId, await newAccount());
  const deleted = Array.from({ length: limits.serviceAccountsEver - 2 }, (_, i) => {
    const id = 1_000_000_000 + i;
    return { ...keys.user(owner.companyId, id), ...first, id, isActive: false };
  });
  await context.table.batchPut(deleted);
  await createAccount(context, owner, account);
  await expect(createAccount(context, owner, account)).rejects.toThrow(`at most ${limits.serviceAccountsEver}`);
});

test(`an account has at most ${limits.keysPerAccount} keys, and keys that are revoked, ended or replaced do not count`, async () => {
  const { context, clock, owner, newAccount, newKey } = await newStage(db);
  const id = await newAccount();
  const [revoked, replaced] = [await newKey(id), await newKey(id)];
  await newKey(id, owner, { expiresAt: iso(START + 1_000) });
  for (let i = 3; i < limits.keysPerAccount; i++) await newKey(id);
  expect(await codeOf(newKey(id))).toBe("conflict");
  await rotateKey(context, owner, id, replaced.id, { overlapSeconds: 60 });
  expect(await codeOf(newKey(id))).toBe("conflict");
  await revokeKey(context, owner, id, revoked.id);
  await newKey(id);
  expect(await codeOf(newKey(id))).toBe("conflict");
  clock.ms += 1_000;
  await newKey(id);
  expect(await codeOf(newKey(id))).toBe("conflict");
});

test("ten keys stay in the list, and replaced keys that still work are among them", async () => {
  const { context, clock, owner, account: id, id: first } = await newStageWithKey(db);
  let newest = first;
  const count = async () => (await listKeys(context, owner.companyId, id)).length;
  for (let i = 1; i < 10; i++) ({ id: newest } = await rotateKey(context, owner, id, newest, { overlapSeconds: 60 }));
  expect(await count()).toBe(10);
  expect(await codeOf(rotateKey(context, owner, id, newest, { overlapSeconds: 60 }))).toBe("conflict");
  clock.ms += 60_000;
  for (let i = 0; i < 9; i++) ({ id: newest } = await rotateKey(context, owner, id, newest, { overlapSeconds: 60 }));
  expect(await count()).toBe(10);
});

test("a key ends after 90 days, or at the time that the creator has chosen, at most 366 days later", async () => {
  const stage = await newStage(db);
  const { owner, newAccount, newKey } = stage;
  const id = await newAccount();
  const [byDefault, longest] = [await newKey(id), await newKey(id, owner, { expiresAt: iso(START + limits.keyMsMax) })];
  for (const end of [START, START + limits.keyMsMax + 1]) {
    await expect(newKey(id, owner, { expiresAt: iso(end) })).rejects.toMatchObject({
      code: "validation_failed",
      faults: [{ pointer: "/expiresAt" }],
    });
  }
  expect(byDefault.expiresAt).toBe(iso(START + limits.keyMs));
  await expectEnd(stage, byDefault.key, START + limits.keyMs);
  await expectEnd(stage, longest.key, START + limits.keyMsMax);
});

test("after a rotation, the old key works for the overlap, at most 7 days, and never beyond its own end", async () => {
  const parses = (overlapSeconds: number): boolean => Rotation.safeParse({ overlapSeconds }).success;
  expect([0, limits.keyOverlapSeconds].map(parses)).toEqual([true, true]);
  expect([-1, limits.keyOverlapSeconds + 1].map(parses)).toEqual([false, false]);
  const stage = await newStage(db);
  const { context, clock, owner, newAccount, newKey, signIn } = stage;
  const id = await newAccount();
  const old = await newKey(id);
  const rotation = { overlapSeconds: limits.keyOverlapSeconds };
  const next = await rotateKey(context, owner, id, old.id, rotation);
  await expectEnd(stage, old.key, START + limits.keyOverlapSeconds * 1_000);
  const day = 86_400_000;
  clock.ms = START + limits.keyMs - day;
  const last = await rotateKey(context, owner, id, next.id, rotation);
  expect(last.expiresAt).toBe(iso(START + 2 * limits.keyMs - day));
  await expectEnd(stage, next.key, START + limits.keyMs);
  await signIn(last.key);
});

test("an orphaned key ends 30 days later, unless an admin takes it over before", async () => {
  const stage = await newStage(db);
  const { context, clock, owner, newAdmin, newAccount, newKey, signIn } = stage;
  const id = await newAccount();
  const leaver = await newAdmin();
  const [ending, kept] = [await newKey(id, leaver), await newKey(id, leaver)];
  await updateUser(context, owner, leaver.userId, { isActive: false });
  clock.ms += limits.orphanedKeyMs - 1;
  await takeOverKey(context, owner, id, kept.id);
  await expectEnd(stage, ending.key, START + limits.orphanedKeyMs);
  await signIn(kept.key);
  await expect(takeOverKey(context, owner, id, ending.id)).rejects.toMatchObject({ code: "conflict" });
  expect(await codeOf(signIn(ending.key))).toBe("unauthenticated");
});

test("an orphaned key makes no key while its rights are cached", async () => {
  const { context, owner, newAdmin, newAccount, newKey, signIn } = await newStage(db);
  const leaver = await newAdmin();
  const cached = await signIn((await newKey(await newAccount(), leaver, { scopes: MANAGING })).key);
  const id = await newAccount();
  await updateUser(context, owner, leaver.userId, { isActive: false });
  expect(await codeOf(newKey(id, cached, { scopes: MANAGING }))).toBe("permission_denied");
  expect(await codeOf(newAccount("sales", cached))).toBe("permission_denied");
});

test("a key may neither lower nor disable an owner, so that a company keeps one", async () => {
  const { context, newAdmin, newAccount, newKey, signIn } = await newStage(db);
  const caller = await signIn((await newKey(await newAccount("owner"), undefined, { scopes: ["users:manage"] })).key);
  const [other, admin] = [await newAdmin("owner"), await newAdmin()];
  for (const patch of [{ role: "admin" as const }, { isActive: false }]) {
    expect(await codeOf(updateUser(context, caller, other.userId, patch))).toBe("permission_denied");
  }
  expect(await codeOf(updateUser(context, caller, admin.userId, { role: "sales" }))).toBe("done");
});

const CACHE_MS = limits.authorizationCacheSeconds * 1_000;

async function callsOf(work: () => Promise<unknown>): Promise<string[]> {
  db.plan(() => pass);
  await work();
  return [...db.calls];
}

/** Returns a key with the id of the given key, another secret, and a correct checksum. */
const otherSecret = (key: string): string => newText(key.slice(4, 12));

/** Each function returns a key that must be refused although its checksum is correct. */
const refusedKeys: Readonly<Record<string, (stage: StageWithKey) => Promise<string>>> = {
  unknown: async () => newText("unknown1"),
  "an unknown id of a known ring": async ({ id }) => newText(ringOf(id) + (id.endsWith("0") ? "1" : "0")),
  "a wrong secret": async ({ key }) => otherSecret(key),
  revoked: async ({ context, owner, account, id, key }) => {
    await revokeKey(context, owner, account, id);
    return key;
  },
  expired: async ({ clock, expiresAt, key }) => {
    clock.ms = Date.parse(expiresAt);
    return key;
  },
  replaced: async ({ context, owner, account, id, key }) => {
    await rotateKey(context, owner, account, id, { overlapSeconds: 0 });
    return key;
  },
  "of a deleted account": async ({ context, owner, account, key }) => {
    await deleteAccount(context, owner, account);
    return key;
  },
  "of a suspended company": async ({ context, owner, key }) => {
    await suspend(context, owner.companyId);
    return key;
  },
};

describe("a key that is refused", () => {
  test.each(Object.keys(refusedKeys))(
    "%s: the same error after one read, and no further read for a minute",
    async (name) => {
      const stage = await newStageWithKey(db);
      const key = (await refusedKeys[name]?.(stage)) ?? "";
      const refusal = () =>
        expect(stage.signIn(key, stage.counted)).rejects.toMatchObject({
          name: "TokenRefused",
          code: "unauthenticated",
          reason: "unknown, expired or revoked key",
          message: "The API key is not valid.",
        });
      expect(await callsOf(refusal)).toEqual(["GetItem"]);
      stage.clock.ms += CACHE_MS - 1;
      expect(await callsOf(refusal)).toEqual([]);
      expect(await callsOf(() => expect(stage.signIn(otherSecret(key), stage.counted)).rejects.toThrow())).toEqual([]);
      stage.clock.ms += 1;
      expect(await callsOf(refusal)).toEqual(["GetItem"]);
    },
  );

  test("counts in the throttle of requests without a token, and in that of no company", async () => {
    const { counted, key } = await newStageWithKey(db);
    Object.assign(process.env, { TABLE_NAME: "t", THROTTLE_KEY_PREFIX: "throttle-" });
    const handler = authorizer((_, text) => callerOfKey(counted, keyIn(text) ?? ""));
    const authorize = (text: string) => {
      const event = { type: "TOKEN", authorizationToken: `Bearer ${text}`, methodArn: "arn:aws:x/live/GET/api/me" };
      return handler(event, { awsRequestId: "r" });
    };
    const throttleOf = async (text: string) => (await authorize(text)).usageIdentifierKey;
    expect(await throttleOf(otherSecret(key))).toBe("throttle-000");
    expect(await throttleOf(key)).toMatch(/^throttle-0(0[1-9]|[1-3]\d)$/);
  });

  test("with a wrong checksum costs no read, and has the same error", async () => {
    const { counted, key } = await newStageWithKey(db);
    const misspelt = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
    const refusal = () =>
      expect(callerOfKey(counted, misspelt)).rejects.toMatchObject({
        reason: "unknown, expired or revoked key",
        message: "The API key is not valid.",
      });
    expect(await callsOf(refusal)).toEqual([]);
  });
});

describe("a valid key", () => {
  test("works while others guess its secret, and a new key works too", async () => {
    const { context, counted, owner, signIn, account, id, key: first } = await newStageWithKey(db);
    const guess = async (key: string) =>
      expect(await codeOf(signIn(otherSecret(key), counted))).toBe("unauthenticated");
    for (let i = 0; i < 3; i++) await guess(first);
    expect((await signIn(first, counted)).key?.id).toBe(id);
    const { key } = await rotateKey(context, owner, account, id, { overlapSeconds: 60 });
    await signIn(key, counted);
    await guess(key);
    await signIn(key, counted);
    await signIn(first, counted);
  });

  test("of a suspended company works again when the company is resumed", async () => {
    const { context, clock, owner, signIn, key } = await newStageWithKey(db);
    await suspend(context, owner.companyId);
    expect(await codeOf(signIn(key))).toBe("unauthenticated");
    await resume(context, owner.companyId);
    clock.ms += CACHE_MS;
    await signIn(key);
  });
});

describe("a use that cannot be stored", () => {
  const lost: Fault = { kind: "lose reply" };
  test.each<[string, Fault]>([
    ["throttled", throttle],
    ["failing", serverError],
    ["in conflict", conflict],
    ["without a reply", lost],
    ["refused by the access rights", { kind: "error", code: "AccessDeniedException", status: 400 }],
  ])("%s fails no request", async (_, fault) => {
    const { counted, signIn, id, key } = await newStageWithKey(db);
    db.plan((operation) => (operation === "UpdateItem" ? fault : pass));
    expect((await signIn(key, counted)).key?.id).toBe(id);
    expect(db.calls[0]).toBe("GetItem");
    expect(db.calls).toContain("UpdateItem");
  });

  test("because the company is erased at the same time creates no row", async () => {
    const { context, counted, owner, signIn, account, key } = await newStageWithKey(db);
    const ring = keys.keyRing((await getUser(context, owner.companyId, account)).sub);
    const meanwhile = () => context.table.batchRemove([ring]);
    db.plan((operation) => (operation === "UpdateItem" ? { kind: "early", meanwhile } : pass));
    await signIn(key, counted);
    expect(await context.table.get(ring)).toBeUndefined();
  });

  test("because the keys change at the same time loses no key and fails no request", async () => {
    const { context, counted, owner, signIn, account, key, newKey: create } = await newStageWithKey(db);
    const added: string[] = [];
    const meanwhile = async () => added.push((await create(account, owner)).key);
    db.plan((operation) => (operation === "UpdateItem" ? { kind: "early", meanwhile } : pass));
    await signIn(key, counted);
    expect(added).toHaveLength(1);
    for (const other of [key, ...added]) await signIn(other, context);
  });
});

test("a use of a key is stored at most once in 15 minutes", async () => {
  const { clock, counted, owner, account: id, key, signIn } = await newStageWithKey(db);
  const callsAt = (ms: number): Promise<string[]> => {
    clock.ms = ms;
    return callsOf(() => signIn(key, counted));
  };
  expect(await callsAt(START)).toEqual(["GetItem", "UpdateItem"]);
  expect(await callsAt(START + limits.keyUseMs - 1)).toEqual(["GetItem"]);
  expect(await callsAt(START + limits.keyUseMs)).toEqual(["GetItem", "UpdateItem"]);
  const [listed] = await listKeys(counted, owner.companyId, id);
  expect(listed?.lastUsedAt).toBe(iso(START + limits.keyUseMs));
});
