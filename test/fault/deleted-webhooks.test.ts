/** A webhook is deleted while something else is asked of it: the other request is not found, and no row of the webhook stays. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { keys } from "#shared/db/keys.ts";
import { readDelivery } from "#shared/deliveries/log.ts";
import { redeliver } from "#shared/deliveries/redeliver.ts";
import { startReplay } from "#shared/deliveries/start-replay.ts";
import { ApiError } from "#shared/http/problem.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { pressAction } from "#shared/webhooks/actions.ts";
import { pauseWebhook, resumeWebhook } from "#shared/webhooks/pause.ts";
import { createRegistration, deleteRegistration } from "#shared/webhooks/registrations.ts";
import { tryOut } from "#shared/webhooks/try-out.ts";
import { readRegistration, rotateSecret, updateRegistration, updateWebhook } from "#shared/webhooks/update.ts";
import { deleteWebhook, readWebhook } from "#shared/webhooks/webhooks.ts";
import { type World, worldOn } from "#shared/world.ts";
import { deliveries, drain, newScene, prospectRow, publish, type Scene, START } from "./event-scene.ts";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

const PROSPECT = 4_711;
const input = {
  event: "prospect.updated",
  filter: null,
  delayMinutes: 0,
  triggerMode: "manual",
  manualTriggerButtonText: "Send",
} as const;

interface Stage {
  readonly at: Scene;
  readonly world: World;
  readonly companyId: number;
  readonly webhookId: number;
  readonly deliveryId: string;
  readonly registrationId: number;
  readonly owner: Caller;
  readonly remove: () => Promise<void>;
}

async function stage(): Promise<Stage> {
  const at = await newScene(db);
  const { companyId, webhookId } = at;
  await publish(at);
  await drain(at);
  const [delivery] = await deliveries(at);
  if (delivery === undefined) throw new Error("there is no delivery");
  const direct = worldOn(db.direct, { now: () => at.clock });
  const { id: registrationId } = await createRegistration(direct, companyId, webhookId, input);
  const row = prospectRow(companyId, PROSPECT);
  await db.direct.write({ put: { ...keys.prospect(companyId, PROSPECT), ...prospectItem(row) } });
  const [userId = 0] = (await loadDictionary(db.direct, companyId)).users.keys();
  const owner: Caller = { companyId, userId, role: "owner", permissions: [] };
  at.queue.length = 0;
  at.calls.length = 0;
  const world = { ...worldOn(at.world.table, { now: () => at.clock }), commit: at.world.table.transact };
  const remove = () => deleteWebhook(direct, companyId, webhookId);
  return { at, world, companyId, webhookId, deliveryId: delivery.id, registrationId, owner, remove };
}

const replayed = { from: new Date(START - 1_000).toISOString(), to: undefined, deliveries: "all" } as const;

const requests: Record<string, (on: Stage) => Promise<unknown>> = {
  "a delivery is sent again": ({ at, world, companyId, webhookId, deliveryId }) =>
    redeliver(world, at.world.queue, companyId, webhookId, deliveryId),
  "a replay is begun": ({ at, world, companyId, webhookId }) =>
    startReplay(world, at.world.queue, companyId, webhookId, replayed),
  "it is tried out": ({ at, world, owner, webhookId }) => tryOut(world, at.world.queue, owner, webhookId),
  "its button is pressed": ({ at, world, owner, registrationId }) =>
    pressAction(world, at.world, owner, PROSPECT, registrationId),
  "it is changed": ({ world, companyId, webhookId }) => updateWebhook(world, companyId, webhookId, { name: "y" }),
  "its secret is rotated": ({ world, companyId, webhookId }) => rotateSecret(world, companyId, webhookId, {}),
  "it is paused": ({ world, companyId, webhookId }) => pauseWebhook(world, companyId, webhookId),
  "a registration is made": ({ world, companyId, webhookId }) => createRegistration(world, companyId, webhookId, input),
  "a registration is changed": ({ world, companyId, webhookId, registrationId }) =>
    updateRegistration(world, companyId, webhookId, registrationId, { delayMinutes: 1 }),
  "a registration is deleted": ({ world, companyId, webhookId, registrationId }) =>
    deleteRegistration(world, companyId, webhookId, registrationId),
};

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
  );

/** What is left of the webhook beside its company's count. */
const rowsOf = async ({ companyId }: Stage): Promise<string[]> =>
  (await db.keysOf(keys.webhooks(companyId).pk)).map(({ sk }) => sk).filter((sk) => sk.startsWith("W#"));

/** The last call commits: what is deleted after that was there when it was asked for. */
describe.each(Object.entries(requests))("a webhook that is deleted while %s", (_, ask) => {
  test("is not found, whichever call it is deleted before, and leaves no row", async () => {
    const calm = await stage();
    expect(await codeOf(ask(calm))).toBe("done");
    const tableCalls = calm.at.calls.flatMap((name, i) => (name === "send" ? [] : [i + 1]));
    for (const at of tableCalls) {
      const struck = await stage();
      struck.at.meanwhile = { at, work: struck.remove };
      expect(await codeOf(ask(struck)), `before ${calm.at.calls[at - 1]} (${at})`).toBe("not_found");
      expect(await rowsOf(struck)).toEqual([]);
    }
  });

  test("is gone, whichever call of the deletion this is done before, and leaves no row", async () => {
    const calm = await stage();
    await deleteWebhook(calm.world, calm.companyId, calm.webhookId);
    for (let at = 1; at <= calm.at.calls.length; at++) {
      const struck = await stage();
      const quiet = { ...struck, world: worldOn(db.direct, { now: () => struck.at.clock }) };
      struck.at.meanwhile = { at, work: () => ask(quiet) };
      await deleteWebhook(struck.world, struck.companyId, struck.webhookId);
      expect(await rowsOf(struck), `before ${calm.at.calls[at - 1]} (${at})`).toEqual([]);
      expect(await codeOf(readWebhook(quiet.world, struck.companyId, struck.webhookId))).toBe("not_found");
    }
  });
});

test("what a deleted webhook had is not found by itself", async () => {
  const { at, world, companyId, webhookId, deliveryId, registrationId, remove } = await stage();
  // As versions before this one left it behind: made while its webhook was deleted.
  const key = keys.registration(companyId, webhookId, registrationId);
  const registration = await db.direct.get(key);
  await remove();
  await db.direct.write({ put: { ...key, ...registration } });
  expect(await codeOf(readDelivery(world, companyId, webhookId, deliveryId))).toBe("not_found");
  expect(await codeOf(redeliver(world, at.world.queue, companyId, webhookId, deliveryId))).toBe("not_found");
  expect(await codeOf(readRegistration(world, companyId, webhookId, registrationId))).toBe("not_found");
});

test("a paused webhook that is deleted while it is resumed is not found", async () => {
  const calm = await stage();
  await pauseWebhook(calm.world, calm.companyId, calm.webhookId);
  calm.at.calls.length = 0;
  await resumeWebhook(calm.world, calm.at.world.queue, calm.companyId, calm.webhookId);
  const tableCalls = calm.at.calls.flatMap((name, i) => (name === "send" ? [] : [i + 1]));
  for (const at of tableCalls) {
    const struck = await stage();
    await pauseWebhook(struck.world, struck.companyId, struck.webhookId);
    struck.at.calls.length = 0;
    struck.at.meanwhile = { at, work: struck.remove };
    const resumed = resumeWebhook(struck.world, struck.at.world.queue, struck.companyId, struck.webhookId);
    expect(await codeOf(resumed)).toBe("not_found");
  }
});
