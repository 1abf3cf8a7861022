/** Tests that reconciliation reports damage to manual, test and delayed deliveries, and work that has stopped. */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { replayKeys } from "#shared/db/webhook-keys.ts";
import * as limits from "#shared/limits.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { deliveryItem, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { StoredWindowEvent } from "#shared/webhooks/events/debounce.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { present } from "../harness/shapes.ts";
import { createRegistration, sendTestDelivery, startReplay, triggerAction } from "../harness/verbs.ts";
import { createdProspect, manual, START } from "./fixtures.ts";
import { drain, newPipeline, type Pipeline, publish, publishIn } from "./pipeline.ts";
import { deliveries, expectReconciled, putLimiter, reconcileNow } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const PROSPECT = 4_711;

/** Creates three waiting deliveries: of a manual trigger, of a test, and of a debounce window with three events. */
async function stage() {
  const at = await newPipeline(db, "prospect.updated", 10);
  const { caller, companyId, webhookId, context } = at;
  const { id } = await createRegistration(at.api, companyId, webhookId, manual("prospect.updated"));
  const row = createdProspect(companyId, PROSPECT);
  const rows = [1, 2, 3, 4].map((version) => ({ ...row, name: `name ${version}`, version }));
  const first = present(rows[0]);
  await db.direct.batchPut([{ ...keys.prospect(companyId, PROSPECT), ...prospectItem(first) }]);
  const items = rows.map(prospectItem);
  for (const [i, after] of items.slice(1).entries()) await publishIn(context, { before: items[i], after });
  const action = await triggerAction(at.api, context, caller, PROSPECT, id);
  const test = await sendTestDelivery(at.api, context.queue, caller, webhookId, "webhook.test");
  const found = await deliveries(at);
  const one = (wanted: (delivery: StoredDelivery) => boolean): StoredDelivery => {
    const [delivery, ...more] = found.filter(wanted);
    if (delivery === undefined || more.length > 0) throw new Error("expected exactly one such delivery");
    return delivery;
  };
  return {
    at,
    triggered: one((delivery) => delivery.id === action.deliveryId),
    testDelivery: one((delivery) => delivery.id === test.deliveryId),
    window: one(({ recordId }) => recordId === PROSPECT),
  };
}

async function eventRows({ companyId, webhookId }: Pipeline) {
  const found = await db.keysOf(`C#${companyId}#D#${webhookId}#R`);
  return found.filter(({ sk }) => sk.startsWith("V#"));
}

/** Each function damages the table, and returns the fault that reconciliation must report. */
const damages: Record<string, (staged: Awaited<ReturnType<typeof stage>>) => Promise<string>> = {
  "an event of an open debounce window is lost": async ({ at, window }) => {
    const first = present((await eventRows(at))[0]);
    await db.direct.batchRemove([first]);
    return `${window.id} (waiting): has 2 events, its debounce window 3`;
  },
  "an event of a sent debounce window is lost": async ({ at, window }) => {
    await drain(at);
    const first = present((await eventRows(at))[0]);
    await db.direct.batchRemove([first]);
    return `${window.id} (delivered): has 2 events, its debounce window 3`;
  },
  "an event names a debounce window that it has not joined": async ({ at, window }) => {
    const first = present((await eventRows(at))[0]);
    const row = StoredWindowEvent.parse(await db.direct.get(first));
    await db.direct.batchPut([{ pk: first.pk, sk: `${first.sk}~`, ...row }]);
    return `${window.id} (waiting): has 4 events, its debounce window 3`;
  },
  "a debounce window is lost": async ({ at, window }) => {
    const found = await db.keysOf(`C#${at.companyId}#D#${at.webhookId}#R`);
    await db.direct.batchRemove(found.filter(({ sk }) => sk.startsWith("W#")));
    return `${window.id} (waiting): has neither a body nor a debounce window`;
  },
  "a body describes another delivery": async ({ triggered, testDelivery }) => {
    await db.direct.batchPut([deliveryItem({ ...triggered, body: testDelivery.body })]);
    return `${triggered.id} (waiting): its body describes another delivery`;
  },
  "the lease of a slot is too long": async ({ at, triggered }) => {
    await putLimiter(db, at, { used: 1, [triggered.id]: `${iso(at.clock + 10 * MINUTE)} x` });
    return `webhook ${at.webhookId}: ${triggered.id} has a slot whose lease is too long`;
  },
  "the drain of a throttled backlog has stopped": async ({ at }) => {
    await putLimiter(db, at, { dueShard: "DUE#1", dueAt: iso(at.clock) });
    at.clock += 16 * MINUTE;
    return `webhook ${at.webhookId}: its throttled backlog has not been drained for a quarter of an hour`;
  },
  "the drain of a paused backlog has stopped": async ({ at }) => {
    await at.pause();
    await at.resume();
    at.clock += 16 * MINUTE;
    return `webhook ${at.webhookId}: its paused backlog has not been drained for a quarter of an hour`;
  },
  "a replay has stopped": async ({ at }) => {
    const { companyId, webhookId } = at;
    await drain(at);
    const range = { from: iso(0), to: undefined, deliveries: "all" } as const;
    expect(await startReplay(at.api, at.context.queue, companyId, webhookId, range)).toEqual({ count: 3 });
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

test("a delivery with the longest delay is still expected when it is sent, and for 30 days afterwards", async () => {
  const at = await newPipeline(db, "prospect.created", limits.delayMinutesMax);
  await publish(at);
  for (const days of [1, 29, 30, 31, 58]) {
    at.clock = START + days * DAY + MINUTE;
    if (days === 30) await drain(at);
    const { delivered } = await expectReconciled(at);
    expect(delivered).toBe(days < 30 ? 0 : 1);
  }
});
