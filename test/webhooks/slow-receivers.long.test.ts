/** Tests that a slow or failing receiver does not delay deliveries to other receivers: slots, circuit breaker and backlogs. */
import { afterEach, describe, expect, test } from "vitest";
import * as keys from "#shared/db/keys.ts";
import { RECHECK_MS, RECHECKS } from "#shared/webhooks/deliver/deliver.ts";
import { listDeliveries } from "#shared/webhooks/deliver/log.ts";
import { BREAKER_FAILURES, slotLimit } from "#shared/webhooks/limiter/limiter.ts";
import { retryGapsMs } from "#shared/webhooks/retry-plan.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { deleteWebhook, pauseWebhook, resumeWebhook } from "../harness/verbs.ts";
import { type Answer, DeliverySimulation } from "./delivery-simulation.ts";
import { START } from "./fixtures.ts";
import { deliveriesOf, expectReconciled, limiterRowOf } from "./stored-deliveries.ts";

// Each test gets an empty table, because the sweeper reads the deliveries of all companies.
const db = faultyDynamoDb("test");
afterEach(async () => {
  for (const simulation of staged.splice(0)) {
    for (const { companyId } of simulation.hooks) await expectReconciled({ db, companyId, clock: simulation.clock });
  }
});
const staged: DeliverySimulation[] = [];

const hang = { ms: 10_000, status: null, error: "no answer within 10000 ms" };
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

async function stage(timeScale = 1) {
  const simulation = new DeliverySimulation(db, 10, timeScale);
  staged.push(simulation);
  const hook = await simulation.hook();
  const limiterRow = () => limiterRowOf(db, hook);
  const { api } = simulation;
  const states = async () => (await deliveriesOf(db, hook)).map(({ state }) => state);
  const query = { limit: 100 };
  const shown = async () => (await listDeliveries(api, hook.companyId, hook.webhookId, query)).items;
  return { simulation, hook, limiterRow, api, states, shown };
}

interface Trouble {
  /** Number of events for the slow or failing receiver, which are published together. */
  readonly events: number;
  /** Number of events for the other company, ten a second. */
  readonly others: number;
  readonly trouble: Answer;
  /** True if the receiver was quick before. The limiter then allows it more concurrent requests at first. */
  readonly wasQuick: boolean;
}

/** Measures how late the deliveries of one company are while many events of another company wait for a slow or failing receiver. */
async function isolate({ events, others, trouble, wasQuick }: Trouble) {
  const simulation = new DeliverySimulation(db, 10);
  staged.push(simulation);
  const [troubled, good] = [await simulation.hook(), await simulation.hook()];
  const quick = { ms: 20 };
  if (wasQuick) {
    simulation.answers = () => quick;
    await simulation.publish(troubled, 1_000_000, 20);
    await simulation.runUntil(simulation.clock + 5_000);
    simulation.mostInFlight.clear();
  }
  simulation.answers = ({ url }) => (url === good.url ? quick : trouble);
  await simulation.publish(troubled, 1, events);
  const begun = simulation.clock;
  const due = new Map<number, number>();
  for (let i = 0; i < others; i++) {
    await simulation.runUntil(begun + i * 100);
    due.set(i + 1, simulation.clock);
    await simulation.publish(good, i + 1, 1);
  }
  await simulation.runUntil(simulation.clock + 30_000);
  const late = simulation.sent
    .filter(({ url }) => url === good.url)
    .map(({ post, at }) => at - (due.get(JSON.parse(post.body).data.prospect.id) ?? 0));
  if (late.length !== others) throw new Error(`${late.length} of ${others} deliveries arrived`);
  return { worstLatenessMs: Math.max(...late), mostConcurrent: simulation.mostInFlight.get(troubled.url) ?? 0 };
}

describe("events for a slow or failing receiver do not delay another company's steady deliveries", () => {
  const many = { events: 10_000, others: 600 };

  test.each([
    ["hangs", hang, { events: 80, others: 20 }],
    ["answers after 9.9 s", { ms: 9_900, status: 200 }, many],
    ["refuses at once", { ms: 0, status: 503 }, { events: 80, others: 20 }],
  ])("if the receiver %s", { timeout: 30 * MINUTE }, async (_, trouble, events) => {
    const found = await isolate({ ...events, trouble, wasQuick: false });
    expect(found.worstLatenessMs).toBe(0);
    expect(found.mostConcurrent).toBeLessThanOrEqual(slotLimit(10, true));
  });

  test("if a quick receiver with many deliveries in flight suddenly hangs", { timeout: 30 * MINUTE }, async () => {
    const found = await isolate({ ...many, trouble: hang, wasQuick: true });
    // A sender waits at most this long for a slot of a receiver that was quick. Meanwhile it cannot send deliveries of the other company.
    expect(found.worstLatenessMs).toBeLessThanOrEqual(RECHECKS * RECHECK_MS);
    expect(found.mostConcurrent).toBe(slotLimit(10, false));
  });
});

describe("the slots of a webhook", () => {
  test("give a slow receiver each delivery once, two at a time", async () => {
    const { simulation, hook, limiterRow, states, shown } = await stage();
    simulation.answers = () => ({ ms: 9_900 });
    await simulation.publish(hook, 1, 30);
    await simulation.runUntil(START + 5 * SECOND);
    expect((await shown()).filter(({ heldBy }) => heldBy === "limit")).toHaveLength(28);
    await simulation.runUntil(START + 10 * MINUTE);
    expect(simulation.sent).toHaveLength(30);
    expect(new Set(simulation.sent.map(({ post }) => post.body)).size).toBe(30);
    expect(simulation.mostInFlight.get(hook.url)).toBe(2);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
    expect(await limiterRow()).toMatchObject({ used: 0 });
    expect(await limiterRow()).not.toHaveProperty("dueShard");
    expect(simulation.queue).toEqual([]);
  });

  test("give a quick receiver eight deliveries at a time, and a sender waits for a slot", async () => {
    const { simulation, hook, states } = await stage();
    simulation.answers = () => ({ ms: 20 });
    await simulation.publish(hook, 1, 5);
    await simulation.runUntil(START + 5 * SECOND);
    simulation.queued = 0;
    await simulation.publish(hook, 10, 100);
    await simulation.runUntil(START + 30 * SECOND);
    expect(simulation.sent).toHaveLength(105);
    expect(simulation.mostInFlight.get(hook.url)).toBe(8);
    // Senders wait a short time for a slot. Without this wait, each message would return about six times.
    expect(simulation.queued).toBeLessThan(125);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
  });
});

describe("the breaker", () => {
  test("opens after five failures, after which one delivery at a time probes the receiver and all deliveries arrive", async () => {
    const { simulation, hook, limiterRow, states, shown } = await stage();
    const backAt = START + 3 * MINUTE;
    simulation.answers = (_, now) => ({ ms: 10, status: now < backAt ? 503 : 200 });
    await simulation.publish(hook, 1, 40);
    await simulation.runUntil(START + 3 * SECOND);
    // When the breaker opens, some requests are already running, so more than `BREAKER_FAILURES` may be sent.
    expect(simulation.sent.length).toBeLessThan(BREAKER_FAILURES + slotLimit(10, false));
    const soFar = simulation.sent.length;
    const waiting = (await deliveriesOf(db, hook)).filter(({ attempt }) => attempt === 1);
    expect(waiting).toHaveLength(40 - soFar);
    expect(waiting.every(({ state, dueShard }) => state === "waiting" && dueShard?.startsWith("DUE#GATED#"))).toBe(
      true,
    );
    const seen = await shown();
    expect(new Set(seen.map(({ heldBy }) => heldBy))).toEqual(new Set(["breaker", null]));
    const first = new Date(START + 12 * SECOND).toISOString();
    for (const { heldBy, nextAttemptAt, attemptCount } of seen) {
      if (heldBy === "breaker") expect(Date.parse(nextAttemptAt ?? "")).toBeCloseTo(Date.parse(first), -2);
      expect(attemptCount).toBe(heldBy === "breaker" ? 0 : 1);
    }
    await simulation.runUntil(backAt);
    const probes = simulation.sent.slice(soFar).map(({ at }) => Math.round((at - START) / SECOND));
    expect(probes).toEqual([12, 32, 72, 152]);
    expect(simulation.mostInFlight.get(hook.url)).toBeLessThanOrEqual(8);
    await simulation.runUntil(START + 60 * MINUTE);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
    expect(await limiterRow()).toMatchObject({ used: 0, fails: 0 });
    expect(await limiterRow()).not.toHaveProperty("openUntil");
  });

  test("makes no attempt before its planned time and skips no attempt", async () => {
    const scale = 20;
    const { simulation, hook } = await stage(scale);
    simulation.answers = () => ({ ms: 10, status: 500 });
    simulation.sweeps = false;
    await simulation.publish(hook, 1, 6);
    await simulation.runUntil(START + (110 * 60 * MINUTE) / scale);
    const found = await deliveriesOf(db, hook);
    expect(new Set(found.map(({ state }) => state))).toEqual(new Set(["exhausted"]));
    for (const { id } of found) {
      const times = simulation.sent.filter(({ post }) => post.headers["X-Service-Delivery"] === id);
      expect(times.map(({ post }) => post.headers["X-Service-Attempt"])).toEqual(
        Array.from({ length: 10 }, (_, i) => String(i + 1)),
      );
      for (const [i, gap] of retryGapsMs.entries()) {
        const waited = ((times[i + 1]?.at ?? 0) - (times[i]?.at ?? 0)) * scale;
        expect(waited).toBeGreaterThanOrEqual(gap * 0.8);
        // A gap varies by up to 20 %. An open breaker lets one of the six deliveries through at least every five minutes.
        expect(waited).toBeLessThanOrEqual(gap * 1.2 + 6 * 5 * MINUTE + MINUTE);
      }
    }
  });
});

describe("a throttled backlog", () => {
  const down = { ms: 10, status: 503 };

  test("is kept while the webhook is paused, and sent after the resumption", async () => {
    const { simulation, hook, api, states, shown } = await stage();
    simulation.answers = () => down;
    await simulation.publish(hook, 1, 20);
    await simulation.runUntil(START + 5 * SECOND);
    await pauseWebhook(api, hook.companyId, hook.webhookId);
    const before = simulation.sent.length;
    await simulation.runUntil(START + 10 * MINUTE);
    expect(simulation.sent).toHaveLength(before);
    expect(new Set((await deliveriesOf(db, hook)).map(({ dueShard }) => dueShard))).toEqual(
      new Set([keys.pausedBacklogShard(hook.companyId, hook.webhookId)]),
    );
    expect(new Set((await shown()).map(({ heldBy }) => heldBy))).toEqual(new Set(["pause"]));
    simulation.answers = () => ({ ms: 10 });
    await resumeWebhook(api, simulation.context.queue, hook.companyId, hook.webhookId);
    await simulation.runUntil(START + 20 * MINUTE);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
  });

  test.each([
    ["open", false],
    ["paused", true],
  ])("is cancelled when its webhook is deleted: %s", async (_, isPaused) => {
    const { simulation, hook, api, limiterRow, states } = await stage();
    simulation.answers = () => down;
    await simulation.publish(hook, 1, 20);
    await simulation.runUntil(START + 5 * SECOND);
    if (isPaused) await pauseWebhook(api, hook.companyId, hook.webhookId);
    await simulation.runUntil(START + 10 * MINUTE);
    const before = simulation.sent.length;
    await deleteWebhook(api, hook.companyId, hook.webhookId);
    await simulation.runUntil(START + 40 * MINUTE);
    expect(simulation.sent).toHaveLength(before);
    expect(new Set(await states())).toEqual(new Set(["cancelled"]));
    expect(await limiterRow()).not.toHaveProperty("dueShard");
    expect(simulation.queue).toEqual([]);
  });
});
