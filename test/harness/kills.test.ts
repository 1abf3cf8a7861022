/**
 * Tests how the harness chooses the calls to AWS at which a test kills its work. One test run chooses only a few calls, but many runs
 * together must choose every call.
 */
import { expect, test } from "vitest";
import { drawnCalls, drawnCallsOf } from "./kills.ts";

const DRAWS = Array.from({ length: 2_000 }, (_, draw) => draw);

test.each([0, 1, 2, 15, 16, 90])("many runs together choose each of %i calls, and each run the last one", (calls) => {
  const chosen = DRAWS.map((draw) => drawnCallsOf(draw, calls, 3));
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  expect([...new Set(chosen.flat())].toSorted((a, b) => a - b)).toEqual(all);
  for (const points of chosen) {
    expect(points.length).toBeLessThanOrEqual(3);
    expect(points.at(-1)).toBe(all.at(-1));
    expect(points).toEqual([...new Set(points)].toSorted((a, b) => a - b));
  }
});

test("many runs together choose each call of work whose length is not known, and each run one of the first eleven", () => {
  const MOST = 90;
  const chosen = DRAWS.map((draw) => {
    const points: number[] = [];
    for (const call of drawnCalls(draw, 3)) {
      if (call > MOST) return points;
      points.push(call);
    }
    return points;
  });
  expect(new Set(chosen.flat()).size).toBe(MOST);
  for (const [first = MOST] of chosen) expect(first).toBeLessThanOrEqual(11);
});

test("two tests of the same work choose different calls", () => {
  expect(drawnCallsOf(1, 90, 0)).not.toEqual(drawnCallsOf(1, 90, 1));
});
