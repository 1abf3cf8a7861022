/** Tests that a command uses at most the permitted number of capacity units per second. */
import { afterEach, expect, test, vi } from "vitest";
import { Pace } from "../../../infra/cli/company/rows.ts";

afterEach(() => vi.useRealTimers());

test("calls wait until the units of earlier calls are paid for", async () => {
  vi.useFakeTimers({ now: 0 });
  const pace = new Pace(100, async (ms) => {
    vi.setSystemTime(Date.now() + ms);
  });
  const starts: number[] = [];
  const call = () => pace.spend(async () => ({ result: starts.push(Date.now()), units: 50 }));
  for (let i = 0; i < 5; i++) await call();
  expect(starts).toEqual([0, 500, 1_000, 1_500, 2_000]);
});
