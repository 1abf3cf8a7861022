/**
 * Tests how many entries of each company one run of the sweeper handles. The number must be bounded and fair to every company, and
 * successive runs must handle every entry.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { fairStrides } from "#shared/webhooks/reconcile/sweep.ts";

const CAPACITY = 1_000;
const backlogs = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 50_000 })), {
  selector: ([companyId]) => companyId,
  minLength: 1,
  maxLength: 200,
});

const takenOf = (count: number, stride: number, minute: number): number =>
  Array.from({ length: count }, (_, place) => place).filter((place) => (place + minute) % stride === 0).length;

test("one run of the sweeper reads at most its capacity plus one entry of each company, and a fair share of every company", () => {
  fc.assert(
    fc.property(backlogs, fc.nat(1_000), (companies, minute) => {
      const strides = fairStrides(new Map(companies), CAPACITY);
      const part = CAPACITY / companies.length;
      let sum = 0;
      for (const [companyId, count] of companies) {
        const taken = takenOf(count, strides(companyId), minute);
        sum += taken;
        if (count <= part) expect(taken).toBe(count);
        else expect(taken).toBeGreaterThanOrEqual(Math.floor(part / 2));
      }
      expect(sum).toBeLessThanOrEqual(CAPACITY + companies.length);
    }),
    { numRuns: 50 },
  );
});

test("a large backlog does not delay another company, whose few entries are all read in the first run", () => {
  const strides = fairStrides(
    new Map([
      [1, 1_000_000],
      [2, 3],
    ]),
    CAPACITY,
  );
  expect(strides(2)).toBe(1);
  expect(strides(1)).toBeGreaterThan(900);
});

test("if a company has stride n, n runs of the sweeper read every entry of its backlog", () => {
  const stride = fairStrides(new Map([[1, 12_345]]), CAPACITY)(1);
  const taken = new Set<number>();
  for (let minute = 77; minute < 77 + stride; minute++) {
    for (let place = 0; place < 12_345; place++) if ((place + minute) % stride === 0) taken.add(place);
  }
  expect(taken.size).toBe(12_345);
});
