/** Tests how the harness chooses the calls to AWS at which a test kills its work. */
import { expect, test } from "vitest";
import { spreadCalls, spreadCallsOf } from "./kills.ts";

test.each([0, 1, 2, 15, 16, 90])("of %i calls, at most three are chosen, and the last one always", (calls) => {
  for (const turn of [0, 1, 2, 3, 8]) {
    const points = spreadCallsOf(calls, turn);
    expect(points.length).toBeLessThanOrEqual(3);
    expect(points.at(-1)).toBe(calls === 0 ? undefined : calls);
    expect(points).toEqual([...new Set(points)].toSorted((a, b) => a - b));
    for (const point of points) expect(point).toBeGreaterThan(0);
  }
});

test("different turns together choose each call of short work", () => {
  const chosen = Array.from({ length: 15 }, (_, turn) => spreadCallsOf(15, turn)).flat();
  expect(new Set(chosen).size).toBe(15);
});

test("two tests of the same work choose different calls", () => {
  expect(spreadCallsOf(90, 0)).not.toEqual(spreadCallsOf(90, 1));
  expect(spreadCalls(0).next()).not.toEqual(spreadCalls(1).next());
});
