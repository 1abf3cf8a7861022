/**
 * Tests that reconciliation (the check that no delivery is lost) reports each kind of damage to manual, test and delayed deliveries. It
 * must also report a webhook whose backlog is not sent any more.
 */
import { beforeAll, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { expectedKeys, limiterKeys, replayKeys } from "#shared/db/webhook-keys.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { StoredWindowEvent } from "#shared/webhooks/debounce-window.ts";
import { pauseWebhook, resumeWebhook } from "#shared/webhooks/deliver/paused-backlog.ts";
import { startReplay } from "#shared/webhooks/deliver/replay.ts";
import { deliveryItem, packedBody, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { sendTestDelivery, triggerAction } from "#shared/webhooks/events/manual-trigger.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { createRegistration } from "#shared/webhooks/subscriptions/registrations.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createdProspect, deliveries, drain, newPipeline, type Pipeline } from "./delivery-pipeline.ts";
import { expectReconciled, reconcileNow } from "./reconciled.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

const MINUTE = 60_000;
const PROSPECT = 4_711;
const api = (at: Pipeline) => contextOn(db.direct, { now: () => at.clock });
async function callerOf({ companyId }: Pipeline): Promise<Caller> {
  const [userId = 0] = (await loadDictionary(db.direct, companyId)).users.keys();
  return { companyId, userId, role: "owner", permissions: [] };
}

interface Staged {
  readonly at: Pipeline;
  /** The delivery of a manual trigger. It is waiting. */
  readonly pressed: StoredDelivery;
  /** The test delivery. It is waiting. */
  readonly tried: StoredDelivery;
  /** The delivery of a debounce window, which collects the events of one record. It contains three events and is waiting. */
  readonly window: StoredDelivery;
}

async function stage(): Promise<Staged> {
  const at = await newPipeline(db, "prospect.updated", 10);
  const { companyId, webhookId, context } = at;
  const { id } = await createRegistration(api(at), companyId, webhookId, {
    event: "prospect.updated",
    filter: null,
    delayMinutes: 0,
    triggerMode: "manual",
    manualTriggerButtonText: "Send",
  });
  const rows = [1, 2, 3, 4].map((version) => ({
    ...createdProspect(companyId, PROSPECT),
    name: `name ${version}`,
    version,
  }));
  const [first] = rows;
  if (first === undefined) throw new Error("no row");
  await db.direct.batchPut([{ ...keys.prospect(companyId, PROSPECT), ...prospectItem(first) }]);
  const reads = batchReads(context);
  for (const [i, before] of rows.slice(0, -1).entries())
    await publishChanges(context, reads, [{ before, after: rows[i + 1] }]);
  const caller = await callerOf(at);
  const press = await triggerAction(api(at), context, caller, PROSPECT, id);
  const trial = await sendTestDelivery(api(at), context.queue, caller, webhookId);
  const found = await deliveries(at);
  const one = (wanted: (delivery: StoredDelivery) => boolean): StoredDelivery => {
    const [delivery, ...more] = found.filter(wanted);
    if (delivery === undefined || more.length > 0) throw new Error("expected exactly one such delivery");
    return delivery;
  };
  return {
    at,
    pressed: one((delivery) => delivery.id === press.deliveryId),
    tried: one((delivery) => delivery.id === trial.deliveryId),
    window: one(({ recordId }) => recordId === PROSPECT),
  };
}

const keyOf = ({ companyId, webhookId, id }: StoredDelivery) => keys.delivery(companyId, webhookId, id);
const entryOf = ({ companyId, createdAt, eventId }: StoredDelivery) =>
  expectedKeys.entry(companyId, createdAt.slice(0, 10), eventId);

async function eventRows({ companyId, webhookId }: Pipeline) {
  const found = await db.keysOf(`C#${companyId}#D#${webhookId}#R`);
  return found.filter(({ sk }) => sk.startsWith("V#"));
}

/** Each function damages the table in one way. It returns the fault that reconciliation must report. */
const damages: Record<string, (staged: Staged) => Promise<string>> = {
  "the delivery of a manual trigger is lost": async ({ pressed }) => {
    await db.direct.batchRemove([keyOf(pressed)]);
    return `${pressed.id}: is expected and has no row`;
  },
  "a test delivery is lost": async ({ tried }) => {
    await db.direct.batchRemove([keyOf(tried)]);
    return `${tried.id}: is expected and has no row`;
  },
  "the delivery of a manual trigger is not expected": async ({ pressed }) => {
    await db.direct.batchRemove([entryOf(pressed)]);
    return `${pressed.id} (waiting): is not among the expected deliveries`;
  },
  "a test delivery is not expected": async ({ tried }) => {
    await db.direct.batchRemove([entryOf(tried)]);
    return `${tried.id} (waiting): is not among the expected deliveries`;
  },
  "a debounced delivery is lost": async ({ window }) => {
    await db.direct.batchRemove([keyOf(window)]);
    return `${window.id}: is expected and has no row`;
  },
  "an event of an open debounce window is lost": async ({ at, window }) => {
    const [first] = await eventRows(at);
    if (first === undefined) throw new Error("no event");
    await db.direct.batchRemove([first]);
    return `${window.id} (waiting): has 2 events, its debounce window 3`;
  },
  "an event of a sent debounce window is lost": async ({ at, window }) => {
    await drain(at);
    const [first] = await eventRows(at);
    if (first === undefined) throw new Error("no event");
    await db.direct.batchRemove([first]);
    return `${window.id} (delivered): has 2 events, its debounce window 3`;
  },
  "an event names a debounce window that it has not joined": async ({ at, window }) => {
    const [first] = await eventRows(at);
    if (first === undefined) throw new Error("no event");
    const row = StoredWindowEvent.parse(await db.direct.get(first));
    await db.direct.batchPut([{ pk: first.pk, sk: `${first.sk}~`, ...row }]);
    return `${window.id} (waiting): has 4 events, its debounce window 3`;
  },
  "a debounce window is lost": async ({ at, window }) => {
    const found = await db.keysOf(`C#${at.companyId}#D#${at.webhookId}#R`);
    await db.direct.batchRemove(found.filter(({ sk }) => sk.startsWith("W#")));
    return `${window.id} (waiting): has neither a body nor a debounce window`;
  },
  "a body describes another delivery": async ({ pressed, tried }) => {
    await db.direct.batchPut([deliveryItem({ ...pressed, body: tried.body })]);
    return `${pressed.id} (waiting): its body describes another delivery`;
  },
  "a body is not JSON": async ({ pressed }) => {
    const change = { set: { body: packedBody("<p>") } };
    await db.direct.write({ update: keyOf(pressed), change });
    return `${pressed.id} (waiting): its body describes no delivery`;
  },
  "the lease of a slot is too long": async ({ at, pressed }) => {
    const { companyId, webhookId } = at;
    const slot = { type: "gate", companyId, webhookId, used: 1, [pressed.id]: `${iso(at.clock + 10 * MINUTE)} x` };
    await db.direct.batchPut([{ ...limiterKeys.limiter(companyId, webhookId), ...slot }]);
    return `webhook ${webhookId}: ${pressed.id} has a slot whose lease is too long`;
  },
  "the drain of a throttled backlog has stopped": async ({ at }) => {
    const { companyId, webhookId } = at;
    const marks = { type: "gate", companyId, webhookId, dueShard: "DUE#1", dueAt: iso(at.clock) };
    await db.direct.batchPut([{ ...limiterKeys.limiter(companyId, webhookId), ...marks }]);
    at.clock += 16 * MINUTE;
    return `webhook ${webhookId}: its throttled backlog has not been drained for a quarter of an hour`;
  },
  "the drain of a paused backlog has stopped": async ({ at }) => {
    await pauseWebhook(api(at), at.companyId, at.webhookId);
    await resumeWebhook(api(at), at.context.queue, at.companyId, at.webhookId);
    at.clock += 16 * MINUTE;
    return `webhook ${at.webhookId}: its paused backlog has not been drained for a quarter of an hour`;
  },
  "a replay has stopped": async ({ at }) => {
    const { companyId, webhookId } = at;
    await drain(at);
    const range = { from: iso(0), to: undefined, deliveries: "all" } as const;
    expect(await startReplay(api(at), at.context.queue, companyId, webhookId, range)).toEqual({ count: 3 });
    expect(await db.direct.get(replayKeys.replay(companyId, webhookId))).toHaveProperty("dueAt");
    at.clock += 16 * MINUTE;
    return `webhook ${webhookId}: its replay has been due for a quarter of an hour`;
  },
};

test.each(Object.entries(damages))("%s", async (_, damage) => {
  const staged = await stage();
  expect(await expectReconciled(staged.at)).toMatchObject({ matched: 3, waiting: 3 });
  const fault = await damage(staged);
  expect((await reconcileNow(staged.at)).faults).toContain(fault);
});

test("without damage all deliveries arrive and no fault is found", async () => {
  const { at } = await stage();
  await drain(at);
  expect(at.posts).toHaveLength(3);
  expect(await expectReconciled(at)).toMatchObject({ matched: 3, delivered: 3, attempts: 3 });
});
