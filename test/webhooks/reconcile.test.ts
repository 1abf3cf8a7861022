/** Tests that reconciliation finds no fault in undamaged data, and reports each kind of damage. */
import { afterEach, beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Change, Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { expectedKeys, limiterKeys } from "#shared/db/webhook-keys.ts";
import { deliveryItem, packedBody, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { deleteWebhook, pauseWebhook } from "../harness/verbs.ts";
import { DeliverySimulation, type Hook } from "./delivery-simulation.ts";
import { START } from "./fixtures.ts";
import { deliveriesOf } from "./stored-deliveries.ts";

const HOUR = 3_600_000;
const db = faultyDynamoDb();
let simulation: DeliverySimulation;
let hook: Hook;

/** All rows of the undamaged table, which each test restores. */
let rows: Item[];

/** Makes six delivered, two exhausted, and four waiting deliveries. */
beforeAll(async () => {
  simulation = new DeliverySimulation(db, 10, 1_000);
  simulation.sweeps = false;
  hook = await simulation.hook();
  simulation.answers = () => ({ ms: 10 });
  await simulation.publish(hook, 1, 6);
  await simulation.runUntil(START + 5_000);
  simulation.answers = () => ({ ms: 10, status: 500 });
  await simulation.publish(hook, 10, 2);
  await simulation.runUntil(START + HOUR / 5);
  await simulation.publish(hook, 20, 4);
  staged = { clock: simulation.clock, queue: [...simulation.queue] };
  rows = await db.direct.batchGet(await db.keysOf(""));
});
let staged: Pick<DeliverySimulation, "clock" | "queue">;
afterEach(async () => {
  simulation.clock = staged.clock;
  simulation.queue.splice(0, simulation.queue.length, ...staged.queue);
  await db.direct.batchRemove(await db.keysOf(""));
  await db.direct.batchPut(rows.map((row) => ({ ...row, ...Key.parse(row) })));
});

const Key = z.object({ pk: z.string(), sk: z.string() });

const reconciled = (again = 0, wait: () => Promise<unknown> = () => Promise.resolve()) =>
  reconcile({ table: db.direct, clock: { now: () => simulation.clock } }, hook.companyId, { again, wait });

async function one(state: StoredDelivery["state"]): Promise<StoredDelivery> {
  const found = (await deliveriesOf(db, hook)).find((delivery) => delivery.state === state);
  if (found === undefined) throw new Error(`no delivery is ${state}`);
  return found;
}
const keyOf = ({ companyId, webhookId, id }: StoredDelivery) => keys.delivery(companyId, webhookId, id);
const setLimiter = (change: Change) =>
  db.direct.write({ update: limiterKeys.limiter(hook.companyId, hook.webhookId), change });
const set = (delivery: StoredDelivery, change: Change) => db.direct.write({ update: keyOf(delivery), change });

test("reconciliation finds no fault after successes, failures and an open breaker", async () => {
  expect(await reconciled()).toEqual({
    matched: 12,
    delivered: 6,
    waiting: 4,
    exhausted: 2,
    cancelled: 0,
    paused: 0,
    throttled: 0,
    attempts: 26,
    expanding: 0,
    faults: [],
  });
  await simulation.runUntil(simulation.clock + 500);
  expect(await reconciled()).toMatchObject({ matched: 12, waiting: 4, faults: [] });
  await pauseWebhook(simulation.api, hook.companyId, hook.webhookId);
  await simulation.runUntil(simulation.clock + 60_000);
  expect(await reconciled()).toMatchObject({ matched: 12, waiting: 4, paused: 4, throttled: 0, faults: [] });
  await deleteWebhook(simulation.api, hook.companyId, hook.webhookId);
  simulation.sweeps = true;
  await simulation.runUntil(simulation.clock + 5 * 60_000);
  expect(await reconciled()).toMatchObject({ matched: 12, waiting: 0, cancelled: 4, faults: [] });
});

const waiting = () => one("waiting");

/** Each function damages the table, and returns the fault that reconciliation must report. */
const damages: Record<string, () => Promise<string>> = {
  "the row of a waiting delivery is lost": async () => {
    const delivery = await waiting();
    await db.direct.batchRemove([keyOf(delivery)]);
    return `${delivery.id}: is expected and has no row`;
  },
  "the row of a delivery with attempts is lost": async () => {
    const delivery = await one("exhausted");
    await db.direct.batchRemove([keyOf(delivery)]);
    return `${delivery.id}: has attempts and no row`;
  },
  "the entry of an expected delivery is lost": async () => {
    const delivery = await waiting();
    const { companyId, createdAt, eventId } = delivery;
    await db.direct.batchRemove([expectedKeys.entry(companyId, createdAt.slice(0, 10), eventId)]);
    return `${delivery.id} (waiting): is not among the expected deliveries`;
  },
  "an attempt is lost": async () => {
    const { companyId, webhookId, id } = await one("exhausted");
    await db.direct.batchRemove([keys.attempt(companyId, webhookId, id, 4)]);
    return `${id} (exhausted): its attempts are 1, 2, 3, 5, 6, 7, 8, 9, 10`;
  },
  "a throttled delivery has a limiter that the sweeper cannot find": async () => {
    const delivery = await waiting();
    const { companyId, webhookId } = hook;
    await set(delivery, { set: { dueShard: keys.throttledBacklogShard(companyId, webhookId) } });
    await setLimiter({ remove: ["dueShard", "dueAt"] });
    return `${delivery.id} (waiting): is throttled, and its limiter is not marked`;
  },
  "a slot is counted and not in use": async () => {
    await setLimiter({ add: { used: 1 } });
    return `webhook ${hook.webhookId}: its limiter counts 1 slots, 0 are in use`;
  },
  "a due delivery is not sent for an hour": async () => {
    simulation.clock += HOUR;
    return `${(await waiting()).id} (waiting): has been due for a quarter of an hour`;
  },
  "a waiting delivery has a deleted webhook": async () => {
    await deleteWebhook(simulation.api, hook.companyId, hook.webhookId);
    simulation.clock += HOUR;
    return `${(await waiting()).id} (waiting): waits for a deleted webhook`;
  },
  "a waiting delivery has a deleted registration": async () => {
    const { registrationId, id } = await waiting();
    await db.direct.batchRemove([keys.registration(hook.companyId, hook.webhookId, registrationId ?? 0)]);
    simulation.clock += HOUR;
    return `${id} (waiting): waits for a deleted registration`;
  },
};

test.each(Object.entries(damages))("damage is found if %s", async (_, damage) => {
  const fault = await damage();
  expect((await reconciled()).faults).toContain(fault);
  expect((await reconciled(2)).faults).toContain(fault);
});

type RowDamage = [fault: string, StoredDelivery["state"], (delivery: StoredDelivery) => Change];

test.each<RowDamage>([
  [" (waiting): has 0 entries in the due index", "waiting", () => ({ remove: ["dueShard"] })],
  [" (waiting): is in an unknown partition of the due index", "waiting", () => ({ set: { dueShard: "DUE#99" } })],
  [
    " (waiting): is paused for a webhook that is not paused",
    "waiting",
    ({ companyId, webhookId }) => ({ set: { dueShard: keys.pausedBacklogShard(companyId, webhookId) } }),
  ],
  [
    " (exhausted): is at attempt 1 of 10 of its plan",
    "waiting",
    () => ({ set: { state: "exhausted" }, remove: ["dueShard"] }),
  ],
  [" (delivered): is in the due index", "delivered", ({ id }) => ({ set: { dueShard: keys.dueShard(id) } })],
  [" (delivered): has 0 attempts, its row says 1", "delivered", () => ({ remove: ["successes"] })],
  [
    " (delivered): its last attempt was answered 500",
    "delivered",
    ({ successes }) => ({ set: { successes: [{ ...successes?.[0], status: 500 }] } }),
  ],
  [" (delivered): its body describes no delivery", "delivered", () => ({ set: { body: packedBody("{") } })],
  [": has a row that cannot be read", "delivered", () => ({ set: { body: Buffer.of(9, 9) } })],
  [": has a row that cannot be read", "delivered", () => ({ set: { state: "lost" } })],
])("a damaged row is reported: DELIVERY%s", async (fault, state, change) => {
  const delivery = await one(state);
  await set(delivery, change(delivery));
  expect((await reconciled(2)).faults).toContain(`${delivery.id}${fault}`);
});

test("a row that is missing only during the first check is no fault", async () => {
  const delivery = await waiting();
  await db.direct.batchRemove([keyOf(delivery)]);
  expect((await reconciled(1, () => db.direct.batchPut([deliveryItem(delivery)]))).faults).toEqual([]);
});
