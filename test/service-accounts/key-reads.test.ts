/** Tests what the authentication of a key reads and writes, and that all refused keys get the same error, whatever the reason. */
import { describe, expect, test } from "vitest";
import { keyIn, newKey, ringOf } from "#shared/auth/api-key.ts";
import { authorizer } from "#shared/auth/authorizer.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { getUser } from "#shared/reference/users.ts";
import { resume, suspend } from "../../infra/cli/company/suspension.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { conflict, type Fault, pass, serverError, throttle } from "../harness/faulty-dynamodb.ts";
import { deleteAccount, revokeKey, rotateKey } from "../harness/verbs.ts";
import { codeOf, newStageWithKey, type StageWithKey } from "./stage.ts";

const db = faultyDynamoDb();
const CACHE_MS = limits.authorizationCacheSeconds * 1_000;

async function callsOf(work: () => Promise<unknown>): Promise<string[]> {
  db.plan(() => pass);
  await work();
  return [...db.calls];
}

/** Returns a key with the same id, another secret, and a correct checksum. */
const otherSecret = (key: string): string => newKey(key.slice(4, 12));

/** Each function returns a key that must be refused although its checksum is correct. */
const refusedKeys: Readonly<Record<string, (stage: StageWithKey) => Promise<string>>> = {
  unknown: async () => newKey("unknown1"),
  "an unknown id of a known ring": async ({ id }) => newKey(ringOf(id) + (id.endsWith("0") ? "1" : "0")),
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
