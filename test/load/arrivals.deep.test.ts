/** Tests the plan of a load test: its rates and its mix of requests. Also tests that two plans with the same seed are equal. */
import { describe, expect, test } from "vitest";
import { arrivals, mix, operations, requestsPerRepHour } from "./arrivals.ts";
import { errorStatuses, percentile, rowOf } from "./report.ts";
import type { Sample } from "./traffic.ts";

const hour = 3_600;
const crowds = [
  { reps: 100, times: 1 },
  { reps: 10, times: 20 },
  { reps: 5, times: 0 },
];

describe("the plan of an hour", () => {
  const plan = arrivals(crowds, hour, 1);
  const of = (company: number) => plan.filter((arrival) => arrival.company === company);

  test("has the requests of the mix for each rep, and more for a noisy company", () => {
    expect(requestsPerRepHour).toBe(119);
    expect(of(0).length / (100 * requestsPerRepHour)).toBeCloseTo(1, 1);
    expect(of(1).length / (10 * 20 * requestsPerRepHour)).toBeCloseTo(1, 1);
    expect(of(2)).toEqual([]);
    for (const operation of operations) {
      const share = plan.filter((arrival) => arrival.operation === operation).length / plan.length;
      expect(share, operation).toBeCloseTo(mix[operation] / requestsPerRepHour, 1);
    }
  });

  test("is in the order of time, within the hour, and of all reps", () => {
    expect(plan.every(({ atMs }, i) => atMs >= (plan[i - 1]?.atMs ?? 0) && atMs < hour * 1_000)).toBe(true);
    expect(new Set(of(0).map(({ rep }) => rep)).size).toBe(100);
  });

  test("is the same for the same seed", () => {
    expect(arrivals(crowds, hour, 1)).toEqual(plan);
    expect(arrivals(crowds, hour, 2)).not.toEqual(plan);
  });
});

describe("the report", () => {
  const sample = (status: number, ms = 10, hasRetryAfter = false): Sample => ({
    company: 0,
    operation: "list",
    ms,
    status,
    hasRetryAfter,
  });

  test("counts 429 with Retry-After separately, and any other failure as an error", () => {
    const samples = [sample(200), sample(201), sample(429, 1, true), sample(429), sample(500), sample(0), sample(404)];
    expect(rowOf("all", samples)).toMatchObject({ sent: 7, ok: 2, throttled: 1, errors: 4 });
    expect(errorStatuses(samples)).toBe("list 429: 1, list 500: 1, list no answer: 1, list 404: 1");
  });

  test("has percentiles of successful answers only", () => {
    const times = Array.from({ length: 100 }, (_, i) => sample(200, i + 1));
    expect(rowOf("all", [...times, sample(429, 9_999, true)])).toMatchObject({ p50: 51, p90: 91, p99: 100 });
    expect(percentile([], 0.5)).toBe(0);
  });
});
