/** Tests that the rows of a segment are sorted correctly by date and id, for any dates and ids. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { listOrder } from "#shared/company-index/search/loaded-segment.ts";

const columns = fc
  .record({
    // Dates that are equal, a millisecond apart, or too far apart for the fast sort. The fast sort packs date and row into one number.
    instants: fc.constantFrom([5], [1_700_000_000_000, 1_700_000_000_001], [-8e15, 0, 8e15]),
    ids: fc.uniqueArray(fc.oneof(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 2 ** 52 })), {
      minLength: 1,
      maxLength: 200,
    }),
    seed: fc.nat(),
  })
  .map(({ instants, ids, seed }) => ({
    ids: Float64Array.from(ids),
    createdAt: Float64Array.from(ids, (id) => instants[(id + seed) % instants.length] ?? 0),
  }));

test("list order is newest first, and higher ids first among equals", () => {
  fc.assert(
    fc.property(columns, ({ ids, createdAt }) => {
      const rows = [...ids.keys()].sort(
        (a, b) => (createdAt[b] ?? 0) - (createdAt[a] ?? 0) || (ids[b] ?? 0) - (ids[a] ?? 0),
      );
      expect([...listOrder({ ids, createdAt })]).toEqual(rows);
    }),
    { numRuns: 500 },
  );
});
