/**
 * Tests requests that run at the same time as the deletion of their webhook. A request that commits after the deletion must answer
 * not_found. No row of the webhook may be left, whichever comes first.
 */
import { beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { pauseWebhook, resumeWebhook } from "#shared/webhooks/deliver/paused-backlog.ts";
import { redeliver } from "#shared/webhooks/deliver/redeliver.ts";
import { startReplay } from "#shared/webhooks/deliver/replay.ts";
import { triggerAction } from "#shared/webhooks/events/manual-trigger.ts";
import { sendTestDelivery } from "#shared/webhooks/events/test-delivery.ts";
import {
  createRegistration,
  deleteRegistration,
  getRegistration,
  updateRegistration,
} from "#shared/webhooks/subscriptions/registrations.ts";
import { deleteWebhook, readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import { rotateSecret, updateWebhook } from "#shared/webhooks/subscriptions/write.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { present } from "../harness/shapes.ts";
import { createdProspect, deliveries, drain, newPipeline, type Pipeline, publish, START } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

const PROSPECT = 4_711;
const input = {
  event: "prospect.updated",
  filter: null,
  delayMinutes: 0,
  triggerMode: "manual",
  manualTriggerButtonText: "Send",
} as const;

interface Setup {
  readonly at: Pipeline;
  readonly context: ApiContext;
  readonly companyId: number;
  readonly webhookId: number;
  readonly deliveryId: string;
  readonly registrationId: number;
  readonly owner: Caller;
  readonly remove: () => Promise<void>;
}

async function setUp(): Promise<Setup> {
  const at = await newPipeline(db);
  const { companyId, webhookId } = at;
  await publish(at);
  await drain(at);
  const [delivery] = await deliveries(at);
  if (delivery === undefined) throw new Error("no delivery");
  const direct = contextOn(db.direct, { now: () => at.clock });
  const { id: registrationId } = await createRegistration(direct, companyId, webhookId, input);
  const row = createdProspect(companyId, PROSPECT);
  await db.direct.write({ put: { ...keys.prospect(companyId, PROSPECT), ...prospectItem(row) } });
  const [userId = 0] = (await loadDictionary(db.direct, companyId)).users.keys();
  const owner: Caller = { companyId, userId, role: "owner", permissions: [] };
  at.queue.length = 0;
  at.calls.length = 0;
  const context = { ...contextOn(at.context.table, { now: () => at.clock }), commit: at.context.table.transact };
  const remove = () => deleteWebhook(direct, companyId, webhookId);
  return { at, context, companyId, webhookId, deliveryId: delivery.id, registrationId, owner, remove };
}

const replayed = { from: new Date(START - 1_000).toISOString(), to: undefined, deliveries: "all" } as const;

const requests: Record<string, (on: Setup) => Promise<unknown>> = {
  "a delivery is redelivered": ({ at, context, companyId, webhookId, deliveryId }) =>
    redeliver(context, at.context.queue, companyId, webhookId, deliveryId),
  "a replay is started": ({ at, context, companyId, webhookId }) =>
    startReplay(context, at.context.queue, companyId, webhookId, replayed),
  "it gets a test delivery": ({ at, context, owner, webhookId }) =>
    sendTestDelivery(context, at.context.queue, owner, webhookId, "webhook.test"),
  "its action is triggered": ({ at, context, owner, registrationId }) =>
    triggerAction(context, at.context, owner, PROSPECT, registrationId),
  "it is changed": ({ context, companyId, webhookId }) => updateWebhook(context, companyId, webhookId, { name: "y" }),
  "its secret is rotated": ({ context, companyId, webhookId }) => rotateSecret(context, companyId, webhookId, {}),
  "it is paused": ({ context, companyId, webhookId }) => pauseWebhook(context, companyId, webhookId),
  "a registration is created": ({ context, companyId, webhookId }) =>
    createRegistration(context, companyId, webhookId, input),
  "a registration is changed": ({ context, companyId, webhookId, registrationId }) =>
    updateRegistration(context, companyId, webhookId, registrationId, { delayMinutes: 1 }),
  "a registration is deleted": ({ context, companyId, webhookId, registrationId }) =>
    deleteRegistration(context, companyId, webhookId, registrationId),
};

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
  );

/** Returns the keys of the webhook's remaining rows. The row that counts the company's webhooks is left out. */
const rowsOf = async ({ companyId }: Setup): Promise<string[]> =>
  (await db.keysOf(keys.webhooks(companyId).pk)).map(({ sk }) => sk).filter((sk) => sk.startsWith("W#"));

/**
 * The test deletes the webhook before one of the request's calls to the table. The request commits its effect in its last call, so the
 * deletion always comes before the commit.
 */
const cases = Object.entries(requests).map(([name, ask], turn) => [name, ask, turn] as const);
describe.each(cases)("a webhook that is deleted while %s", (_, ask, turn) => {
  test("is not found and leaves no row if the deletion comes before any call of the request", {
    tags: "sized",
  }, async () => {
    const calm = await setUp();
    expect(await codeOf(ask(calm))).toBe("done");
    const tableCalls = calm.at.calls.flatMap((name, i) => (name === "send" ? [] : [i + 1]));
    for (const call of killPointsOf(tableCalls.length, turn)) {
      const at = present(tableCalls[call - 1]);
      const interrupted = await setUp();
      interrupted.at.meanwhile = { at, work: interrupted.remove };
      expect(await codeOf(ask(interrupted)), `before ${calm.at.calls[at - 1]} (${at})`).toBe("not_found");
      expect(await rowsOf(interrupted)).toEqual([]);
    }
  });

  test("is deleted and leaves no row if the request comes before any call of the deletion", {
    tags: "sized",
  }, async () => {
    const calm = await setUp();
    await deleteWebhook(calm.context, calm.companyId, calm.webhookId);
    for (const at of killPointsOf(calm.at.calls.length, turn)) {
      const interrupted = await setUp();
      const quiet = { ...interrupted, context: contextOn(db.direct, { now: () => interrupted.at.clock }) };
      interrupted.at.meanwhile = { at, work: () => ask(quiet) };
      await deleteWebhook(interrupted.context, interrupted.companyId, interrupted.webhookId);
      expect(await rowsOf(interrupted), `before ${calm.at.calls[at - 1]} (${at})`).toEqual([]);
      expect(await codeOf(readWebhook(quiet.context, interrupted.companyId, interrupted.webhookId))).toBe("not_found");
    }
  });
});

test("deliveries and registrations of a deleted webhook are not found", async () => {
  const { at, context, companyId, webhookId, deliveryId, registrationId, remove } = await setUp();
  // A read during the deletion can find the registration of a webhook that no longer exists. The API must not show it.
  const key = keys.registration(companyId, webhookId, registrationId);
  const registration = await db.direct.get(key);
  await remove();
  await db.direct.write({ put: { ...key, ...registration } });
  expect(await codeOf(readDelivery(context, companyId, webhookId, deliveryId))).toBe("not_found");
  expect(await codeOf(redeliver(context, at.context.queue, companyId, webhookId, deliveryId))).toBe("not_found");
  expect(await codeOf(getRegistration(context, companyId, webhookId, registrationId))).toBe("not_found");
});

test("a paused webhook is not found if it is deleted during its resumption", async () => {
  const calm = await setUp();
  await pauseWebhook(calm.context, calm.companyId, calm.webhookId);
  calm.at.calls.length = 0;
  await resumeWebhook(calm.context, calm.at.context.queue, calm.companyId, calm.webhookId);
  const tableCalls = calm.at.calls.flatMap((name, i) => (name === "send" ? [] : [i + 1]));
  for (const at of tableCalls) {
    const interrupted = await setUp();
    await pauseWebhook(interrupted.context, interrupted.companyId, interrupted.webhookId);
    interrupted.at.calls.length = 0;
    interrupted.at.meanwhile = { at, work: interrupted.remove };
    const resumed = resumeWebhook(
      interrupted.context,
      interrupted.at.context.queue,
      interrupted.companyId,
      interrupted.webhookId,
    );
    expect(await codeOf(resumed)).toBe("not_found");
  }
});
