/** Tests activity reports: exact counts, `countedSince`, the refusal of a report that would read too much, and damaged rows. */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { systemClock } from "#shared/clock.ts";
import { countActivity } from "#shared/company-index/activity/read.ts";
import { repairActivity } from "#shared/company-index/repair/activity.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import { activityReport } from "#shared/reports/activity.ts";
import { DaysOfZone } from "#shared/reports/days.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { calledBy, Killed, tableKilledAt } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import { createProspect } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";
import { Run, rareScripts, scripts } from "./activity-law.ts";

const db = faultyDynamoDb();
const today = () => new Date().toISOString().slice(0, 10);
const query = () => ({ from: today(), to: today(), groupBy: "user", timezone: "UTC" }) as const;
const sooner = { least: 1, settleMs: 0, sumAfter: 0 };

test("reports count what users have done, after any writes and killed flushes", { tags: ["sized"] }, async () => {
  const play = fc.asyncProperty(scripts, async (steps) => {
    const context = warmFunction(db, systemClock);
    const { caller, repId } = await newCompany(context);
    await new Run(context, caller, repId, { ms: Date.UTC(2026, 0, 10, 20) }).play(steps);
  });
  await fc.assert(play, { numRuns: rareScripts.length + sized({ short: 2, wide: 5 }), examples: rareScripts });
});

test.each([
  ["UTC", "2026-03-08", "2026-03-08T00:00:00.000Z", "2026-03-08T23:59:59.999Z"],
  ["America/Denver", "2026-03-08", "2026-03-08T07:00:00.000Z", "2026-03-09T05:59:59.999Z"],
  ["America/Denver", "2026-11-01", "2026-11-01T06:00:00.000Z", "2026-11-02T06:59:59.999Z"],
  ["Asia/Kathmandu", "2026-01-01", "2025-12-31T18:15:00.000Z", "2026-01-01T18:14:59.999Z"],
  ["America/Sao_Paulo", "2017-10-15", "2017-10-15T03:00:00.000Z", "2017-10-16T01:59:59.999Z"],
])("in %s the day %s lasts from %s to %s", (zone, day, first, last) => {
  const days = new DaysOfZone(zone);
  const bounds = [days.startOf(day), days.endOf(day)];
  expect(bounds.map((ms) => new Date(ms).toISOString())).toEqual([first, last]);
  const [start = 0, end = 0] = bounds;
  expect([start - 1, start, end, end + 1].map((ms) => days.dayOf(ms) === day)).toEqual([false, true, true, false]);
});

test("a report says since when all activity is counted", async () => {
  const clock = { ms: Date.UTC(2026, 5, 1), now: () => clock.ms };
  const context = warmFunction(db, clock);
  const now = () => new Date(clock.ms).toISOString();
  const company = async () => {
    const { caller } = await newCompany(context);
    const { companyId } = caller;
    const range = { ...query(), from: "2026-06-01", to: "2026-06-02" };
    return {
      companyId,
      since: async () => (await activityReport(context, caller, range)).countedSince,
      flushed: async () => {
        clock.ms += 1_000;
        await createProspect(context, caller, { name: "Ann" });
        await flush(context, companyId, sooner);
        return now();
      },
    };
  };
  const { since, flushed } = await company();
  await flushed();
  expect(await since()).toBeNull();
  // The state row says since when all facts of the company are stored. Without this row, that time is the time of the report. The next
  // flush then writes the row with the time of the flush.
  const old = await company();
  await context.table.batchRemove([activityKeys.factState(old.companyId)]);
  expect(await old.since()).toBe(now());
  const first = await old.flushed();
  clock.ms += 1_000;
  expect(await old.since()).toBe(first);
});

test("a report that would read too much is refused", async () => {
  const { context, companyId, sound } = await newScene();
  await sound();
  const range = { from: Date.now() - 86_400_000, to: Date.now() + 86_400_000 };
  const nothing = { cell: () => undefined, fact: () => undefined, imported: () => undefined };
  const how = { sumsSuffice: false, nowMs: 0, newCounting: () => nothing };
  await countActivity(context.table, companyId, range, { ...how, maxBytes: 1_000 });
  await expect(countActivity(context.table, companyId, range, { ...how, maxBytes: 10 })).rejects.toMatchObject({
    code: "validation_failed",
  });
});

const brokenSums = { type: "daySum", version: 0, bytes: new Uint8Array(9) };

test.each(["a row of the log", "a row of another type", "the sums of a day", "the state"])(
  "after damage to %s, flushes continue, reports answer unavailable, and a repair makes them possible again",
  async (what) => {
    const { context, caller, companyId, create, sound } = await newScene();
    for (let i = 0; i < 3; i++) {
      await sound();
      await create();
    }
    const logged = { ...activityKeys.loggedFacts(companyId, 0, 0), type: "loggedFacts" };
    const damaged = {
      "a row of the log": { ...logged, facts: new Uint8Array(9) },
      "a row of another type": { ...logged, facts: "text" },
      "the sums of a day": { ...activityKeys.daySum(companyId, today(), 0), ...brokenSums },
      "the state": { ...activityKeys.factState(companyId), type: "factState", since: "text" },
    }[what];
    if (damaged === undefined) throw new Error(what);
    await context.table.batchPut([damaged]);
    const logs = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    for (let i = 0; i < 3; i++) {
      expect(await sound()).toMatchObject({ entries: 1 });
      await create();
    }
    expect(logs.mock.calls.join("")).toContain('"error":"ActivityUnreadable"');
    logs.mockRestore();
    const report = () => activityReport(context, caller, query());
    await expect(report()).rejects.toMatchObject({ code: "unavailable", cause: { name: "ActivityUnreadable" } });

    expect(await repairActivity(context, companyId)).toEqual([damaged.sk]);
    const repaired = await report();
    expect(repaired.countedSince).toBe(`${today()}T12:00:00.000Z`);
    await create();
    await sound();
    expect((await report()).totals.creations).toBe(repaired.totals.creations + 1);
    expect(await repairActivity(context, companyId)).toEqual([]);
  },
);

test("a flush between the reads and the write of a repair makes the repair begin anew", async () => {
  const { context, caller, companyId, create, sound } = await newScene();
  const days = { ...activityKeys.daySum(companyId, "2020-01-01", 0), ...brokenSums };
  await context.table.batchPut([days]);
  let flushes = 0;
  const table = calledBy(async (work, name) => {
    if (name === "transact" && flushes++ === 0) {
      await sound();
      await create();
    }
    return work();
  }, context.table);
  const report = () => activityReport(context, caller, query());
  expect(await repairActivity({ ...context, table }, companyId)).toEqual([days.sk]);
  expect(flushes).toBe(2);
  const before = (await report()).totals.creations;
  for (let i = 0; i < 3; i++) {
    await sound();
    expect((await report()).totals.creations).toBe(before + i);
    await create();
  }
});

/** Two flushes have moved two of the three facts into the log or the daily sums. The third fact is in an unflushed entry. */
async function newScene() {
  const context = warmFunction(db, { now: () => Date.parse(`${today()}T12:00:00Z`) });
  const { caller } = await newCompany(context);
  const { companyId } = caller;
  const create = () => createProspect(context, caller, { name: "Ann" });
  const sound = () => flush(context, companyId, sooner);
  for (let i = 0; i < 2; i++) {
    await create();
    await sound();
  }
  await create();
  return { context, caller, companyId, create, sound };
}

/** Returns the calls of a flush that is killed at call number `at`, or at none if `at` is infinite. */
async function killedFlush(
  { context, companyId }: Awaited<ReturnType<typeof newScene>>,
  at: number,
  takesEffect: boolean,
) {
  const { table, calls } = tableKilledAt(at, takesEffect, context.table);
  const outcome = await flush({ ...context, table }, companyId, sooner).catch((error: unknown) => error);
  expect(outcome instanceof Killed).toBe(calls.length >= at);
  return calls;
}

test("a killed flush loses no fact and counts none twice", { tags: ["sized"] }, async () => {
  const calls = await killedFlush(await newScene(), Number.POSITIVE_INFINITY, true);
  // A flush moves the facts in its transaction and in the calls after it. A kill at one of these calls could lose or double a fact, so the
  // test kills the flush at each of them. It kills the flush only at some of the calls before the transaction.
  const late = calls.map((_, i) => i + 1).slice(calls.indexOf("transact"));
  for (const at of new Set([...killPointsOf(calls.length, 5), ...late])) {
    for (const takesEffect of [true, false]) {
      const scene = await newScene();
      const { context, caller, companyId, create, sound } = scene;
      const expectCount = async (creations: number) => {
        const { totals } = await activityReport(context, caller, query());
        expect({ at, takesEffect, ...totals }).toMatchObject({ at, takesEffect, creations });
      };
      await killedFlush(scene, at, takesEffect);
      await expectCount(3);
      await sound();
      await expectCount(3);
      await create();
      await sound();
      await sound();
      await create();
      await sound();
      await expectCount(5);
      const log = { ...activityKeys.factLog(companyId), begins: "A#" };
      expect(await Array.fromAsync(context.table.query(log))).toHaveLength(1);
    }
  }
});

test("a fact that two killed flushes have logged is counted once, although only one of its entries is left", async () => {
  const context = warmFunction(db, systemClock);
  const { caller } = await newCompany(context);
  const { companyId } = caller;
  const create = () => createProspect(context, caller, { name: "Ann" });
  const later = { least: 1, settleMs: 0, sumAfter: 1_000 };
  /** Flushes with a process that is killed after it has deleted `deleted` of the flushed entries. */
  const killedAfter = async (deleted: number) => {
    const { table } = context;
    const batchRemove: typeof table.batchRemove = async (found) => {
      if (found.length === 0) return;
      await table.batchRemove(found.slice(0, deleted));
      throw new Killed();
    };
    await expect(flush({ ...context, table: { ...table, batchRemove } }, companyId, later)).rejects.toThrow(Killed);
  };
  const expectCreations = async (creations: number) =>
    expect((await activityReport(context, caller, query())).totals).toMatchObject({ creations });
  await create();
  await killedAfter(0);
  await create();
  await killedAfter(1);
  await expectCreations(2);
  for (let creations = 2; creations < 5; creations++) {
    await flush(context, companyId, sooner);
    await expectCreations(creations);
    await create();
  }
});
