/**
 * Tests requests that cannot be sent, for example because DNS fails. They do not count as attempts, do not open the circuit breaker, do not
 * pause the webhook, and are repeated for a limited time.
 */
import { expect, test } from "vitest";
import * as keys from "#shared/db/keys.ts";
import type { Exchange } from "#shared/outbound/post.ts";
import { listDeliveries, readDelivery } from "#shared/webhooks/deliver/log.ts";
import { BREAKER_FAILURES } from "#shared/webhooks/limiter/limiter.ts";
import { UNSENT_MS } from "#shared/webhooks/retry-plan.ts";
import { getWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { DeliverySimulation, type Hook } from "./delivery-simulation.ts";
import { START } from "./fixtures.ts";
import { killedAtEach, newPipeline, type Pipeline, publishUntilDone, settleFor } from "./pipeline.ts";
import { deliveries, deliveriesOf, expectReconciled, limiterRowOf } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const REASON = "a.test could not be looked up";
const unsent: Partial<Exchange> = { status: null, error: REASON, isUnsent: true };

/** Creates a webhook whose requests cannot be sent. */
async function unsentStage() {
  const simulation = new DeliverySimulation(db, 10);
  const hook = await simulation.hook();
  simulation.answers = () => ({ ...unsent, ms: 3_000 });
  const { companyId, webhookId } = hook;
  return {
    simulation,
    hook,
    rows: () => deliveriesOf(db, hook),
    detail: (id: string) => readDelivery(simulation.api, companyId, webhookId, id),
    expectNotFailing: async () => {
      expect(await getWebhook(simulation.api, companyId, webhookId)).toMatchObject({ status: "active" });
      expect(await db.direct.get(keys.webhook(companyId, webhookId))).not.toHaveProperty("failingSince");
    },
    reconciled: () => expectReconciled({ db, companyId, clock: simulation.clock }),
  };
}

test("a day without sending uses up no attempt, and the first attempt follows when requests can be sent again", async () => {
  const { simulation, hook, rows, detail, expectNotFailing, reconciled } = await unsentStage();
  await simulation.publish(hook, 1, 1);
  await simulation.runUntil(START + HOUR);
  const { items } = await listDeliveries(simulation.api, hook.companyId, hook.webhookId, { limit: 9 });
  expect(items).toMatchObject([{ status: "waiting", attemptCount: 0, heldBy: "limit" }]);
  expect((await detail(items[0]?.id ?? "")).attempts).toEqual([]);
  expect(await limiterRowOf(db, hook)).toMatchObject({ used: 0 });
  expect(await limiterRowOf(db, hook)).not.toHaveProperty("fails");
  await expectNotFailing();
  // The wait doubles from 10 s up to 5 minutes, so at most 18 requests are sent in the first hour.
  expect(simulation.sent.length).toBeGreaterThan(HOUR / (5.5 * MINUTE));
  expect(simulation.sent.length).toBeLessThanOrEqual(6 + HOUR / (5 * MINUTE));
  simulation.clock = START + 24 * HOUR;
  simulation.answers = () => ({ ms: 20 });
  await simulation.runUntil(START + 24 * HOUR + 10 * MINUTE);
  expect(await rows()).toMatchObject([{ state: "delivered", attempt: 1 }]);
  const limiterRow = await limiterRowOf(db, hook);
  for (const field of ["openUntil", "unsent", "openings"]) expect(limiterRow).not.toHaveProperty(field);
  expect(await reconciled()).toMatchObject({ delivered: 1, attempts: 1 });
});

test("a delivery that cannot be sent during the whole retry plan is exhausted, and its log contains the reason", async () => {
  const { simulation, hook, rows, detail, expectNotFailing, reconciled } = await unsentStage();
  await simulation.publish(hook, 1, 15);
  await simulation.runUntil(START + 30 * MINUTE);
  const early = simulation.sent.length;
  // Before the first wait, each sender may send one request. After each wait, only one request is sent.
  expect(early).toBeLessThanOrEqual(20);
  simulation.clock = START + UNSENT_MS - 10 * MINUTE;
  await simulation.runUntil(START + UNSENT_MS - MINUTE);
  expect((await rows()).map(({ state }) => state)).toEqual(Array.from({ length: 15 }, () => "waiting"));
  await simulation.runUntil(START + UNSENT_MS + 15 * MINUTE);
  const ended = await rows();
  expect(ended.map(({ state }) => state)).toEqual(Array.from({ length: 15 }, () => "exhausted"));
  expect(await detail(ended[0]?.id ?? "")).toMatchObject({
    attempts: [{ number: 1, status: null, error: REASON }],
    attemptCount: 1,
  });
  await expectNotFailing();
  expect(await reconciled()).toMatchObject({ exhausted: 15 });
});

test("only failures of the receiver open its breaker, not unsent requests between them", async () => {
  const { simulation, hook, reconciled } = await unsentStage();
  simulation.answers = () => (simulation.sent.length % 2 === 0 ? { ms: 20, status: 500 } : { ...unsent, ms: 20 });
  await simulation.publish(hook, 1, 3);
  let failures = 0;
  for (let minute = 1; failures < BREAKER_FAILURES && minute < 600; minute++) {
    const limiterRow = await limiterRowOf(db, hook);
    failures = (await reconciled()).attempts;
    expect(limiterRow?.fails ?? 0).toBe(failures);
    if (failures < BREAKER_FAILURES) expect(limiterRow ?? {}).not.toHaveProperty("openings");
    await simulation.runUntil(START + minute * MINUTE);
  }
  expect(await limiterRowOf(db, hook)).toMatchObject({ openings: expect.any(Number) });
});

test("a delivery arrives when requests can be sent again, despite a kill at each call", { tags: "sized" }, async () => {
  const run = async (at: Pipeline): Promise<void> => {
    at.answers = () => (at.clock < START + MINUTE ? unsent : {});
    await publishUntilDone(at);
    await settleFor(at, 4);
  };
  await killedAtEach({ stage: () => newPipeline(db), run, turns: [0, 1] }, async (at, place) => {
    expect(await deliveries(at), place).toMatchObject([{ state: "delivered", attempt: 1 }]);
    expect(await expectReconciled(at, place), place).toMatchObject({ delivered: 1 });
  });
});

test("webhooks whose name server is silent do not delay another company's deliveries, and all their deliveries are retried", async () => {
  const simulation = new DeliverySimulation(db, 10);
  const silent = await simulation.hook();
  const good = await simulation.hook();
  simulation.answers = ({ url }) => (url === good.url ? { ms: 20 } : { ...unsent, ms: 3_000 });
  await simulation.publish(silent, 1, 20);
  const due = new Map<number, number>();
  for (let i = 1; i <= 20; i++) {
    await simulation.runUntil(START + i * 100);
    due.set(i, simulation.clock);
    await simulation.publish(good, 1_000 + i, 1);
  }
  await simulation.runUntil(START + MINUTE);
  const sent = simulation.sent.filter(({ url }) => url === good.url);
  expect(sent.map(({ at }, i) => at - (due.get(i + 1) ?? 0))).toEqual(sent.map(() => 0));
  expect(sent).toHaveLength(20);
  const statesOf = async (hook: Hook) =>
    new Set((await deliveriesOf(db, hook)).map(({ state, attempt }) => `${state} ${attempt}`));
  expect(await statesOf(good)).toEqual(new Set(["delivered 1"]));
  expect(await statesOf(silent)).toEqual(new Set(["waiting 1"]));
});
