/**
 * Tests a replay of more deliveries than one request can send. The replay must count them exactly, send them in several steps, and send
 * ten per second.
 */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import { contextOn } from "#shared/context.ts";
import { deliveryId, deliveryItem, newDelivery } from "#shared/webhooks/delivery.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { startReplay } from "../harness/verbs.ts";
import { consume, deliveries, newPipeline, START } from "./delivery-pipeline.ts";

const COUNT = 12_000;
const STEP = 50;

const db = faultyDynamoDb();
test(`a replay of ${COUNT} deliveries counts exactly and keeps its rate`, { timeout: 1_800_000 }, async () => {
  const at = await newPipeline(db);
  const { companyId, webhookId } = at;
  const api = contextOn(db.direct, { now: () => at.clock });
  const { registrations } = await readWebhook(api, companyId, webhookId);
  const registrationId = registrations[0]?.id ?? 0;
  const rows = Array.from({ length: COUNT }, (_, i) => {
    const createdAt = iso(START + i * 1_000);
    const id = deliveryId(`event-${i}`, registrationId, createdAt);
    const about = { id, companyId, webhookId, registrationId, event: "prospect.created", eventId: `event-${i}` };
    const occasion = { ...about, createdAt, dueMs: START, trigger: "automatic", triggeredBy: null } as const;
    const { dueShard: _due, ...made } = newDelivery(occasion, JSON.stringify({ filler: "x".repeat(1_500) }));
    const state = i % 4 === 0 ? "delivered" : "exhausted";
    return deliveryItem({ ...made, state, attempt: state === "delivered" ? 1 : 10 });
  });
  await db.direct.batchPut(rows);
  at.clock = START + COUNT * 1_000;
  const range = { from: iso(START), to: undefined, deliveries: "undelivered" } as const;
  const started = performance.now();
  const { count } = await startReplay(api, at.context.queue, companyId, webhookId, range);
  console.info(`counted ${count} of ${COUNT} in ${Math.round(performance.now() - started)} ms`);
  expect(count).toBe((COUNT / 4) * 3);

  const begin = at.clock;
  let steps = 0;
  for (;;) {
    const next = at.queue.findIndex(({ message }) => "drain" in message);
    if (next === -1) break;
    const [entry] = at.queue.splice(next, 1);
    if (entry === undefined) break;
    at.clock = Math.max(at.clock, entry.at);
    await consume(at, entry.message, false);
    steps++;
  }
  expect(at.queue).toHaveLength(count);
  expect(steps).toBeLessThanOrEqual(count / STEP + 1);
  const due = (await deliveries(at)).filter(({ state }) => state === "waiting").sort((a, b) => (a.id < b.id ? -1 : 1));
  expect(due).toHaveLength(count);
  for (const [i, { attempt, planFrom, dueAt }] of due.entries()) {
    expect({ attempt, planFrom, dueAt }).toEqual({ attempt: 11, planFrom: 11, dueAt: iso(begin + i * 100) });
  }
});
