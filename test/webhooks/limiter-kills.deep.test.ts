/** Tests kills at the calls of the limiter, its breaker and the drain. Every delivery must arrive, and no slot may stay in use. */
import { describe, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import { BREAKER_FAILURES, limiterOf } from "#shared/webhooks/limiter/limiter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { Killed } from "../harness/killable.ts";
import { sized } from "../harness/tier.ts";
import { START } from "./fixtures.ts";
import { drain, drainTogether, killedAtEach, newPipeline, type Pipeline, publishIds, settleFor } from "./pipeline.ts";
import { expectReconciled, limiterRowOf, putLimiter, statesOf } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const COUNT = 3;
/**
 * The receiver fails for this time. The breaker stops sending for 10 s and then for 20 s, so only the attempt after the second stop
 * succeeds.
 */
const DOWN_MS = 25_000;

const publish = (at: Pipeline) => publishIds(at, [1, 2, 3]);

/** Returns a pipeline whose receiver opens the circuit breaker at its next failure. */
async function troubled(): Promise<Pipeline> {
  const at = await newPipeline(db);
  await putLimiter(db, at, { used: 0, fails: BREAKER_FAILURES - 1, slow: true });
  at.answers = () => ({ status: at.clock < START + DOWN_MS ? 503 : 200 });
  await publish(at);
  at.calls.length = 0;
  return at;
}

type Empty = (at: Pipeline) => Promise<void>;
const run = (at: Pipeline, empty: Empty): Promise<void> => settleFor(at, sized({ short: 3, wide: 4 }), empty);

/** @param cutOff number of posts that may be repeated, because their result was not recorded before the kill */
async function expectArrived(at: Pipeline, place: string, cutOff: number): Promise<void> {
  expect(await statesOf(at), place).toEqual(Array.from({ length: COUNT }, () => "delivered"));
  const attempts = at.posts.map(({ headers }) => `${headers["X-Service-Delivery"]} ${headers["X-Service-Attempt"]}`);
  expect(attempts.length - new Set(attempts).size, place).toBeLessThanOrEqual(cutOff);
  expect(new Set(at.posts.map(({ body }) => body)).size, place).toBe(COUNT);
  expect(await expectReconciled(at, place), place).toMatchObject({ matched: COUNT, delivered: COUNT, throttled: 0 });
  const limiterRow = (await limiterRowOf(db, at)) ?? {};
  expect(limiterRow, place).toMatchObject({ fails: 0 });
  for (const mark of ["openUntil", "dueShard", "dueAt"]) expect(limiterRow, place).not.toHaveProperty(mark);
  const held = limiterOf(at, limiterRow).slots.filter(({ until }) => until > iso(at.clock));
  expect(held, place).toEqual([]);
}

test("without a kill there are one failure and two probes, and the other deliveries follow the second probe", async () => {
  const at = await troubled();
  await run(at, drain);
  await expectArrived(at, "undisturbed", 0);
  expect(at.posts).toHaveLength(COUNT + 2);
  expect(await limiterRowOf(db, at)).toMatchObject({ used: 0 });
});

test.each([
  { name: "with one sender at a time", empty: drain, work: { turns: [0, 2] } },
  { name: "if all messages are lost", empty: drain, work: { turns: [2, 4], withQueue: true } },
  { name: "with concurrent senders", empty: drainTogether, work: { turns: [1, 3] } },
] as const)("a kill at each call loses no delivery $name", { tags: "sized" }, async ({ empty, work }) => {
  const own = { ...work, stage: troubled, run: (at: Pipeline) => run(at, empty) };
  await killedAtEach(own, (at, place, number, calls, isAfter) => {
    // A kill before the first post cannot cause a second post.
    const first = calls.indexOf("post") + 1;
    const isCutOff = number > first || (number === first && isAfter) || empty === drainTogether;
    return expectArrived(at, place, isCutOff ? 1 : 0);
  });
});

const secondsOf = (at: Pipeline): number[] =>
  at.posts.map(({ headers }) => Number(headers["webhook-timestamp"]) - START / 1_000);

describe("a sender that dies with its slot", () => {
  test("as the probe of an open breaker delays the other deliveries until its lease ends, and no longer", async () => {
    const at = await troubled();
    at.answers = (_, number) => {
      if (number === 2) throw new Killed();
      return { status: number === 1 ? 503 : 200 };
    };
    await run(at, drain);
    await expectArrived(at, "probe", 1);
    const [failed, died, ...later] = secondsOf(at);
    expect([failed, died]).toEqual([0, 10]);
    expect(Math.min(...later)).toBeGreaterThanOrEqual(28);
    // The lease ends after 28 s, SQS delivers the message again within 90 s, and the sweeper continues the backlog within 60 s.
    expect(Math.max(...later)).toBeLessThanOrEqual(28 + 90 + 60);
    expect(later).toHaveLength(COUNT);
  });

  test("blocks the slot until its lease ends, so two dead senders block both slots and all deliveries until then", async () => {
    const at = await newPipeline(db);
    await publish(at);
    at.answers = (_, number) => {
      if (number <= 2) throw new Killed();
      return {};
    };
    await run(at, drainTogether);
    await expectArrived(at, "two dead", 2);
    const [first, second, ...later] = secondsOf(at);
    expect([first, second]).toEqual([0, 0]);
    expect(Math.min(...later)).toBeGreaterThanOrEqual(18);
    expect(later).toHaveLength(COUNT);
  });
});
