/** One receiver's trouble is its own: what it may take of the senders, what waits at its gate, and what others notice of it. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { RECHECK_MS, RECHECKS } from "#shared/webhooks/deliver/deliver.ts";
import { listDeliveries } from "#shared/webhooks/deliver/log.ts";
import { pauseWebhook, resumeWebhook } from "#shared/webhooks/deliver/paused-backlog.ts";
import { BREAKER_FAILURES, slotLimit } from "#shared/webhooks/limiter/limiter.ts";
import { retryGapsMs } from "#shared/webhooks/retry-plan.ts";
import { deleteWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { deliveriesOf, START } from "./delivery-pipeline.ts";
import { isolate } from "./measure-isolation.ts";
import { expectReconciled } from "./reconciled.ts";
import { Senders } from "./simulated-senders.ts";

const db = faultyDynamoDb("test");
/** The sweeper finds what waits in the whole table: each test has its own. */
beforeEach(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});
/** However a test has ended, the books of its companies balance. */
afterEach(async () => {
  for (const senders of staged.splice(0)) {
    for (const { companyId } of senders.hooks) await expectReconciled({ db, companyId, clock: senders.clock });
  }
});
const staged: Senders[] = [];

const hang = { ms: 10_000, status: null, error: "no answer within 10000 ms" };
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

async function stage(timeScale = 1) {
  const senders = new Senders(db, 10, timeScale);
  staged.push(senders);
  const hook = await senders.hook();
  const gate = () => db.direct.get(gateKeys.gate(hook.companyId, hook.webhookId));
  const api = contextOn(db.direct, { now: () => senders.clock });
  const states = async () => (await deliveriesOf(db, hook)).map(({ state }) => state);
  const query = { limit: 100 };
  const shown = async () => (await listDeliveries(api, hook.companyId, hook.webhookId, query)).items;
  return { senders, hook, gate, api, states, shown };
}

describe("beside 80 events for a receiver that is in trouble, another company's deliveries", () => {
  test.each([
    ["hangs", hang],
    ["answers after 9.9 s", { ms: 9_900, status: 200 }],
    ["refuses at once", { ms: 0, status: 503 }],
  ])("wait for nobody: one that %s", async (_, trouble) => {
    const found = await isolate(db, { events: 80, others: 20, trouble, wasQuick: false });
    staged.push(found.senders);
    expect(found.worstLatenessMs).toBe(0);
    expect(found.sendersHeld).toBeLessThanOrEqual(slotLimit(10, true));
  });

  test("wait for nobody when a quick receiver of which much is in flight hangs of a sudden", async () => {
    const found = await isolate(db, { events: 80, others: 20, trouble: hang, wasQuick: true });
    staged.push(found.senders);
    // Nor longer than a sender looks whether a quick receiver has a place again.
    expect(found.worstLatenessMs).toBeLessThanOrEqual(RECHECKS * RECHECK_MS);
    expect(found.sendersHeld).toBe(slotLimit(10, false));
  });
});

describe("the places of a webhook", () => {
  test("a slow receiver gets everything in the end, each once, two at a time", async () => {
    const { senders, hook, gate, states, shown } = await stage();
    senders.answers = () => ({ ms: 9_900 });
    await senders.publish(hook, 1, 30);
    await senders.runUntil(START + 5 * SECOND);
    expect((await shown()).filter(({ heldBy }) => heldBy === "limit")).toHaveLength(28);
    await senders.runUntil(START + 10 * MINUTE);
    expect(senders.sent).toHaveLength(30);
    expect(new Set(senders.sent.map(({ post }) => post.body)).size).toBe(30);
    expect(senders.mostInFlight.get(hook.url)).toBe(2);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
    // Nobody waits: the gate has left the due index, and no place is taken.
    expect(await gate()).toMatchObject({ used: 0 });
    expect(await gate()).not.toHaveProperty("dueShard");
    expect(senders.queue).toEqual([]);
  });

  test("a quick receiver gets eight at a time, and who finds all places taken waits for one", async () => {
    const { senders, hook, states } = await stage();
    senders.answers = () => ({ ms: 20 });
    await senders.publish(hook, 1, 5);
    await senders.runUntil(START + 5 * SECOND);
    senders.queued = 0;
    await senders.publish(hook, 10, 100);
    await senders.runUntil(START + 30 * SECOND);
    expect(senders.sent).toHaveLength(105);
    expect(senders.mostInFlight.get(hook.url)).toBe(8);
    // Hardly any came back to the queue; without the wait each does, six times.
    expect(senders.queued).toBeLessThan(125);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
  });

  test("of senders that died are free again when their leases end", async () => {
    const { senders, hook, states } = await stage();
    const { companyId, webhookId } = hook;
    const lost = new Date(START + 18_000).toISOString();
    const dead = { dlv_a: `${lost} 1`, dlv_b: `${lost} 2` };
    await db.direct.write({
      update: gateKeys.gate(companyId, webhookId),
      change: { set: { type: "gate", companyId, webhookId, ...dead }, add: { used: 2 } },
    });
    await senders.publish(hook, 1, 3);
    await senders.runUntil(START + 17_000);
    expect(senders.sent).toEqual([]);
    await senders.runUntil(START + MINUTE);
    expect(senders.sent).toHaveLength(3);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
  });
});

describe("the breaker", () => {
  test("opens after five failures; then one delivery at a time asks whether the receiver is back, and all arrive", async () => {
    const { senders, hook, gate, states, shown } = await stage();
    const backAt = START + 3 * MINUTE;
    senders.answers = (_, now) => ({ ms: 10, status: now < backAt ? 503 : 200 });
    await senders.publish(hook, 1, 40);
    await senders.runUntil(START + 3 * SECOND);
    // Those that were under way when it opened were sent too.
    expect(senders.sent.length).toBeLessThan(BREAKER_FAILURES + slotLimit(10, false));
    const soFar = senders.sent.length;
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
    await senders.runUntil(backAt);
    const probes = senders.sent.slice(soFar).map(({ at }) => Math.round((at - START) / SECOND));
    expect(probes).toEqual([12, 32, 72, 152]);
    expect(senders.mostInFlight.get(hook.url)).toBeLessThanOrEqual(8);
    await senders.runUntil(START + 60 * MINUTE);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
    expect(await gate()).toMatchObject({ used: 0, fails: 0 });
    expect(await gate()).not.toHaveProperty("openUntil");
  });

  test("never makes an attempt early or leaves one out: each comes when the plan says, or up to five minutes later", async () => {
    const scale = 20;
    const { senders, hook } = await stage(scale);
    senders.answers = () => ({ ms: 10, status: 500 });
    senders.sweeps = false;
    await senders.publish(hook, 1, 6);
    await senders.runUntil(START + (110 * 60 * MINUTE) / scale);
    const found = await deliveriesOf(db, hook);
    expect(new Set(found.map(({ state }) => state))).toEqual(new Set(["exhausted"]));
    for (const { id } of found) {
      const times = senders.sent.filter(({ post }) => post.headers["X-Service-Delivery"] === id);
      expect(times.map(({ post }) => post.headers["X-Service-Attempt"])).toEqual(
        Array.from({ length: 10 }, (_, i) => String(i + 1)),
      );
      for (const [i, gap] of retryGapsMs.entries()) {
        const waited = ((times[i + 1]?.at ?? 0) - (times[i]?.at ?? 0)) * scale;
        expect(waited).toBeGreaterThanOrEqual(gap * 0.8);
        // Six in turn, each after another failure.
        expect(waited).toBeLessThanOrEqual(gap * 1.2 + 6 * 5 * MINUTE + MINUTE);
      }
    }
  });
});

describe("what waits at the gate", () => {
  const down = { ms: 10, status: 503 };

  test("is kept when the webhook is paused, and sent when it is resumed", async () => {
    const { senders, hook, api, states, shown } = await stage();
    senders.answers = () => down;
    await senders.publish(hook, 1, 20);
    await senders.runUntil(START + 5 * SECOND);
    await pauseWebhook(api, hook.companyId, hook.webhookId);
    const before = senders.sent.length;
    await senders.runUntil(START + 10 * MINUTE);
    expect(senders.sent).toHaveLength(before);
    expect(new Set((await deliveriesOf(db, hook)).map(({ dueShard }) => dueShard))).toEqual(
      new Set([keys.heldShard(hook.companyId, hook.webhookId)]),
    );
    expect(new Set((await shown()).map(({ heldBy }) => heldBy))).toEqual(new Set(["pause"]));
    senders.answers = () => ({ ms: 10 });
    await resumeWebhook(api, senders.context.queue, hook.companyId, hook.webhookId);
    await senders.runUntil(START + 20 * MINUTE);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
  });

  test.each([
    ["open", false],
    ["paused", true],
  ])("is cancelled with its webhook: %s", async (_, isPaused) => {
    const { senders, hook, api, gate, states } = await stage();
    senders.answers = () => down;
    await senders.publish(hook, 1, 20);
    await senders.runUntil(START + 5 * SECOND);
    if (isPaused) await pauseWebhook(api, hook.companyId, hook.webhookId);
    await senders.runUntil(START + 10 * MINUTE);
    const before = senders.sent.length;
    await deleteWebhook(api, hook.companyId, hook.webhookId);
    await senders.runUntil(START + 40 * MINUTE);
    expect(senders.sent).toHaveLength(before);
    expect(new Set(await states())).toEqual(new Set(["cancelled"]));
    expect(await gate()).not.toHaveProperty("dueShard");
    expect(senders.queue).toEqual([]);
  });

  test("is found again by the sweeper when every message is lost", async () => {
    const { senders, hook, states } = await stage();
    senders.answers = (_, now) => (now < START + 5 * SECOND ? down : { ms: 10 });
    await senders.publish(hook, 1, 20);
    await senders.runUntil(START + 5 * SECOND);
    senders.queue.length = 0;
    await senders.runUntil(START + 15 * MINUTE);
    expect(new Set(await states())).toEqual(new Set(["delivered"]));
    expect(new Set(senders.sent.filter(({ at }) => at > START + 5 * SECOND).map(({ post }) => post.body)).size).toBe(
      20,
    );
  });
});
