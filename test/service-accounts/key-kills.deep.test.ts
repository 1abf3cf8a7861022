/** Tests killed requests about API keys and accounts: each changes everything or nothing, and takes effect once if it is repeated. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { StoredKeyRing } from "#shared/auth/key-ring.ts";
import type { ApiContext } from "#shared/context.ts";
import { commitTo } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { carryOut, type Plan } from "#shared/db/plan.ts";
import type { Contract } from "#shared/http/contract.ts";
import * as limits from "#shared/limits.ts";
import { createKey, revokeKey, rotateKey, takeOverKey } from "#shared/reference/api-keys.ts";
import { changeUser } from "#shared/reference/change-user.ts";
import { createAccount, deleteAccount, listAccounts } from "#shared/reference/service-accounts.ts";
import { getUser } from "#shared/reference/users.ts";
import { handler as creation } from "../../functions/api-keys/create.ts";
import { handler as rotation } from "../../functions/api-keys/rotate.ts";
import { handler as takeOver } from "../../functions/api-keys/take-over.ts";
import { handler as newAccount } from "../../functions/service-accounts/create.ts";
import { commanded } from "../harness/commanded.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { deaths, killedAt, killPointsOf } from "../harness/kills.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import { codeOf, newStage } from "./stage.ts";

const db = faultyDynamoDb();

async function newScene() {
  const stage = await newStage(db);
  const admin = await stage.newAdmin();
  const account = await stage.newAccount();
  const kept = await stage.newKey(account, admin);
  const { sub } = await getUser(stage.context, stage.owner.companyId, account);
  const ring = async () => StoredKeyRing.parse(await stage.context.table.get(keys.keyRing(sub)));
  return { ...stage, admin, account, kept, ring };
}
type Scene = Awaited<ReturnType<typeof newScene>>;

interface Killed {
  readonly work: (context: ApiContext, scene: Scene) => Promise<Plan<unknown>>;
  /** Returns how many times the request has taken effect. Fails the test if only a part of the effect is there. */
  readonly effects: (scene: Scene) => Promise<number>;
  /** The contract of the endpoint, if its requests may have an idempotency key. */
  readonly contract?: Contract;
}

const ringOfOne = async ({ ring }: Scene, test: (key: StoredKeyRing["keys"][number]) => boolean): Promise<number> =>
  (await ring()).keys.filter(test).length;

const requests: Readonly<Record<string, Killed>> = {
  "new key": {
    contract: creation.contract,
    work: (context, { owner, account }) => createKey(context, owner, account, { name: "n", scopes: ["audit:read"] }),
    effects: (scene) => ringOfOne(scene, ({ name }) => name === "n"),
  },
  rotation: {
    contract: rotation.contract,
    work: (context, { owner, account, kept }) => rotateKey(context, owner, account, kept.id, { overlapSeconds: 60 }),
    effects: async (scene) => {
      const [old, ...others] = (await scene.ring()).keys;
      expect(others.map(({ id }) => id)).toEqual(old?.replacedBy === undefined ? [] : [old.replacedBy]);
      return others.length;
    },
  },
  "take-over": {
    contract: takeOver.contract,
    work: (context, { owner, account, kept }) => takeOverKey(context, owner, account, kept.id),
    effects: (scene) => ringOfOne(scene, ({ createdBy }) => createdBy === scene.owner.userId),
  },
  revocation: {
    work: (context, { owner, account, kept }) => revokeKey(context, owner, account, kept.id),
    effects: async (scene) => 1 - (await ringOfOne(scene, () => true)),
  },
  "new account": {
    contract: newAccount.contract,
    work: (context, { owner }) => createAccount(context, owner, { name: "n", role: "admin", permissions: [] }),
    effects: async ({ context, owner }) => {
      const made = (await listAccounts(context, owner.companyId)).filter(({ name }) => name === "n");
      for (const { sub, id } of made) {
        expect(await context.table.get(keys.keyRing(sub))).toMatchObject({ userId: id, rights: { isActive: true } });
      }
      return made.length;
    },
  },
  "deletion of an account": {
    work: (context, { owner, account }) => deleteAccount(context, owner, account),
    effects: async ({ context, owner, account, ring }) => {
      const { isActive } = await getUser(context, owner.companyId, account);
      const { keys: left, rights } = await ring();
      expect([left.length, rights.isActive]).toEqual(isActive ? [1, true] : [0, false]);
      return isActive ? 0 : 1;
    },
  },
  "lower role of a creator": {
    work: (context, { owner, admin }) =>
      changeUser(context, memoryIdentities(), owner, admin.userId, { role: "sales" }),
    effects: async ({ context, owner, admin, ring }) => {
      const { role } = await getUser(context, owner.companyId, admin.userId);
      const [key] = (await ring()).keys;
      expect([key?.creatorRights.role, key?.orphanedAt !== undefined]).toEqual([role, role === "sales"]);
      return role === "sales" ? 1 : 0;
    },
  },
};

const Answered = z.object({ key: z.optional(z.string()) });

describe.each(Object.entries(requests))("%s", (name, { work, effects, contract }) => {
  const turn = Object.keys(requests).indexOf(name);
  const send = async (scene: Scene, context: ApiContext): Promise<unknown> => {
    if (contract === undefined) return carryOut(() => work(context, scene), commitTo(context.table));
    return (await commanded(context, scene.owner, keyedPost("once"), (own) => work(own, scene), contract)).value;
  };

  test("killed at a table call, takes effect as a whole, and once when it is repeated", {
    tags: ["sized"],
  }, async () => {
    const counting = await newScene();
    db.plan(() => pass);
    await send(counting, counting.counted);
    for (const call of killPointsOf(db.calls.length, turn)) {
      for (const [, death] of deaths) {
        const scene = await newScene();
        db.plan(killedAt(call, death));
        await send(scene, scene.counted).catch(() => undefined);
        db.plan(() => pass);
        const before = await effects(scene);
        expect(before).toBeLessThanOrEqual(1);
        scene.clock.ms += limits.idempotentRunMs + 1;
        const answers = [await send(scene, scene.context).catch(() => undefined)];
        if (contract !== undefined) answers.push(await send(scene, scene.context));
        expect(await effects(scene)).toBe(1);
        expect(answers.at(-1)).toEqual(answers[0]);
        const { key } = Answered.parse(answers[0] ?? {});
        if (key !== undefined) expect(await codeOf(scene.signIn(key))).toBe("done");
      }
    }
  });
});
