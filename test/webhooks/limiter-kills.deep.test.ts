/**
 * Tests kills at the calls of the concurrency limiter, of its circuit breaker, and of the drain, which sends the backlog. Every delivery
 * must arrive, and at the end no slot may be in use.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import { BREAKER_FAILURES, limiterOf } from "#shared/webhooks/limiter/limiter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import {
  drain,
  drainTogether,
  expectReconciled,
  type Kill,
  Killed,
  limiterRowOf,
  newPipeline,
  type Pipeline,
  publishIds,
  putLimiter,
  START,
  settleFor,
  statesOf,
} from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
/** Number of deliveries. */
const COUNT = 3;
/**
 * Milliseconds for which the receiver fails. The circuit breaker stops sending for 10 s and then for 20 s. The attempt after the first stop
 * therefore fails, and the attempt after the second stop succeeds.
 */
const DOWN_MS = 25_000;

const publish = (at: Pipeline) => publishIds(at, [1, 2, 3]);

/** Publishes events for a receiver that has failed several times. Its next failure opens the circuit breaker. */
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

/** The names of all calls if no kill happens: `inTurn` with one sender at a time, `together` with concurrent senders. */
const calls: { inTurn: readonly string[]; together: readonly string[] } = { inTurn: [], together: [] };
beforeAll(async () => {
  const calm = await troubled();
  await run(calm, drain);
  const together = await troubled();
  await run(together, drainTogether);
  Object.assign(calls, { inTurn: calm.calls, together: together.calls });
});
const killed = (calls: readonly string[], turn: number): number[] =>
  killPointsOf(calls.length, turn).slice(0, sized({ short: 2, wide: calls.length }));

/**
 * Expects that all events are delivered. At most `cutOff` posts may be repeated. These are the posts whose result was not recorded before
 * the kill.
 */
async function expectArrived(at: Pipeline, place: string, cutOff: number): Promise<void> {
  expect(await statesOf(at), place).toEqual(Array.from({ length: COUNT }, () => "delivered"));
  const attempts = at.posts.map(({ headers }) => `${headers["X-Service-Delivery"]} ${headers["X-Service-Attempt"]}`);
  expect(attempts.length - new Set(attempts).size, place).toBeLessThanOrEqual(cutOff);
  expect(new Set(at.posts.map(({ body }) => body)).size, place).toBe(COUNT);
  expect(await expectReconciled(at, place), place).toMatchObject({ matched: COUNT, delivered: COUNT, throttled: 0 });
  const limiterRow = (await limiterRowOf(db, at)) ?? {};
  // Expects a closed circuit breaker, an empty backlog, and no slot in use.
  expect(limiterRow, place).toMatchObject({ fails: 0 });
  for (const mark of ["openUntil", "dueShard", "dueAt"]) expect(limiterRow, place).not.toHaveProperty(mark);
  const { slots } = limiterOf(at, limiterRow);
  expect(
    slots.filter(({ until }) => until > iso(at.clock)),
    place,
  ).toEqual([]);
}

async function drainKilled(kill: Kill, empty: Empty, cutOff: number, name: string | undefined): Promise<void> {
  const at = await troubled();
  at.kill = kill;
  await run(at, empty);
  await expectArrived(at, `${kill.when} ${name ?? at.calls[kill.at - 1]} (${kill.at})`, cutOff);
}

test("without a kill there are one failure and two probes, and the other deliveries follow the second probe", async () => {
  const at = await troubled();
  await run(at, drain);
  await expectArrived(at, "undisturbed", 0);
  expect(at.posts).toHaveLength(COUNT + 2);
  expect(await limiterRowOf(db, at)).toMatchObject({ used: 0 });
});

describe("killed at each call, before and after it takes effect", () => {
  const deaths = [
    ["before", 0],
    ["after", 2],
  ] as const;

  test.each(deaths)("%s: no delivery is lost with one sender at a time", { tags: "sized" }, async (when, turn) => {
    const first = calls.inTurn.indexOf("post") + 1;
    for (const number of killed(calls.inTurn, turn)) {
      // A kill before the first post cannot cause a second post.
      const cutOff = number > first || (number === first && when === "after") ? 1 : 0;
      await drainKilled({ at: number, when }, drain, cutOff, calls.inTurn[number - 1]);
    }
  });

  test.each(deaths)("%s: no delivery is lost if all messages are lost", { tags: "sized" }, async (when, turn) => {
    for (const number of killed(calls.inTurn, turn + 2)) {
      await drainKilled({ at: number, when, withQueue: true }, drain, 1, calls.inTurn[number - 1]);
    }
  });

  test.each(deaths)("%s: no delivery is lost with concurrent senders", { tags: "sized" }, async (when, turn) => {
    for (const number of killed(calls.together, turn + 1)) {
      await drainKilled({ at: number, when }, drainTogether, 1, undefined);
    }
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
    // The killed sender occupies its slot until 28 s after the start. 90 s later, SQS has delivered its message again. If only the sweeper
    // can continue the backlog, another 60 s pass, because it runs once a minute.
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
