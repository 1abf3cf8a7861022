/** Tests the code that decides whether a load test has passed. The exit code of `npm run load` depends on this decision. */
import { expect, test } from "vitest";
import type { Settled } from "./recorder.ts";
import type { Row } from "./report.ts";
import { verdictOf } from "./verdict.ts";

const row = (p99: number, errors = 0): Row => ({
  operation: "all",
  sent: 400,
  ok: 400 - errors,
  throttled: 0,
  errors,
  p50: 10,
  p90: 20,
  p99,
});
const settled: Settled = {
  writes: 100,
  events: 100,
  lostWrites: 0,
  lostEvents: 0,
  doubledEvents: 0,
  repeatedDeliveries: 3,
};
const beside = (p99: number) => [
  { rows: [row(40)], others: row(40) },
  { rows: [row(90)], others: row(p99) },
];

test("a noisy company that makes the others more than twice as slow fails the load, unless the limit is waived", () => {
  expect(verdictOf(beside(80), settled, 2)).toEqual({ holds: true, faults: [], ratio: 2 });
  const slow = verdictOf(beside(84), settled, 2);
  expect(slow).toMatchObject({ holds: false, ratio: 2.1 });
  expect(slow.faults).toEqual(["the p99 of the others was 2.1 times as long, and at most 2 times is allowed"]);
  expect(verdictOf(beside(84), settled, 3).holds).toBe(true);
  expect(verdictOf(beside(84), settled, 0)).toEqual({ holds: true, faults: [], ratio: 2.1 });
});

test("a load of all companies has no ratio, because it slows everybody down", () => {
  const phases = [{ rows: [row(40)] }, { rows: [row(400)] }];
  expect(verdictOf(phases, settled, 2)).toEqual({ holds: true, faults: [], ratio: undefined });
});

test.each([
  [{ lostWrites: 1 }, "1 lost writes"],
  [{ lostEvents: 2 }, "2 lost events"],
  [{ doubledEvents: 3 }, "3 events that arrived twice"],
])("%j fails the load, also if the limit of the ratio is waived", (change, fault) => {
  expect(verdictOf(beside(40), { ...settled, ...change }, 0)).toMatchObject({ holds: false, faults: [fault] });
});

test("a failed request fails the load", () => {
  const phases = [{ rows: [row(40)] }, { rows: [row(5, 0), row(40, 2)] }];
  expect(verdictOf(phases, settled, 2)).toMatchObject({ holds: false, faults: ["2 failed requests"] });
});
