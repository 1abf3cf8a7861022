/** Tests the summary of a load test, and the decision whether it has passed. The exit code of `npm run load` depends on this decision. */
import { expect, test } from "vitest";
import { errorStatuses, rowOf, verdictOf } from "./report.ts";
import type { Sample } from "./traffic.ts";

const sample = (status: number, ms = 10, hasRetryAfter = false): Sample => ({
  company: 0,
  operation: "list",
  ms,
  status,
  hasRetryAfter,
});

test("429 with Retry-After is counted separately, any other failure as an error, and only successes have percentiles", () => {
  const wrong = [sample(429, 9_999, true), sample(429), sample(500), sample(0), sample(404)];
  const times = Array.from({ length: 100 }, (_, i) => sample(i === 0 ? 201 : 200, i + 1));
  const counts = { sent: 105, ok: 100, throttled: 1, errors: 4 };
  expect(rowOf("all", [...times, ...wrong])).toMatchObject({ ...counts, p50: 51, p90: 91, p99: 100 });
  expect(errorStatuses([...times, ...wrong])).toBe("list 429: 1, list 500: 1, list no answer: 1, list 404: 1");
});

const settled = { writes: 9, events: 9, lostWrites: 0, lostEvents: 0, doubledEvents: 0, repeatedDeliveries: 3 };
const phase = (othersMs: number, status = 200) => ({
  rows: [rowOf("list", []), rowOf("all", [sample(status)])],
  others: rowOf("others", [sample(200, othersMs)]),
});

test.each([
  ["passes", {}, 80, 200, []],
  ["passes if the limit is waived", { maxRatio: 0 }, 84, 200, []],
  ["fails", {}, 84, 200, ["the p99 of the others was 2.1 times as long, and at most 2 times is allowed"]],
  ["fails", { lostWrites: 1, maxRatio: 0 }, 40, 200, ["1 lost writes"]],
  ["fails", { lostEvents: 2 }, 40, 200, ["2 lost events"]],
  ["fails", { doubledEvents: 3 }, 40, 200, ["3 events that arrived twice"]],
  ["fails", {}, 40, 500, ["1 failed requests"]],
])("a load %s: %j, p99 of the others %i ms instead of 40, status %i", (_, change, othersMs, status, faults) => {
  const { maxRatio = 2, ...counts } = { maxRatio: undefined, ...change };
  expect(verdictOf([phase(40), phase(othersMs, status)], { ...settled, ...counts }, maxRatio)).toEqual({
    holds: faults.length === 0,
    faults,
    ratio: othersMs / 40,
  });
});
