/** Sorts all matching rows, and tests that each page of a list contains exactly the rows at its positions in this sorted list. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { IndexRow } from "#shared/company-index/record.ts";
import { listOrder } from "#shared/company-index/search/loaded-segment.ts";
import type { Matches, SegmentMatches } from "#shared/company-index/search/match.ts";
import { pageOf } from "#shared/company-index/search/page.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { plainRow, segmentOf } from "./plain-rows.ts";

const rowAt = (id: number, createdAt: number): IndexRow => plainRow({ id, version: id + 1, createdAt });

function matchesIn(rows: readonly IndexRow[], isMatch: (id: number) => boolean, inOrder: boolean): SegmentMatches {
  const segment = segmentOf(rows.map((row) => ({ row, notes: [] })));
  if (inOrder) segment.sortForLists();
  const order = inOrder ? (segment.newest ?? new Uint16Array()) : Uint16Array.from(rows, (_, at) => at);
  const matching = order.filter((at) => isMatch(rows[at]?.id ?? 0));
  return { inView: { segment, age: 0, dead: undefined }, rows: matching, inListOrder: inOrder };
}

const listed = (rows: readonly IndexRow[]) =>
  rows
    .toSorted((a, b) => b.createdAt - a.createdAt || b.id - a.id)
    .map(({ id, version, createdAt }) => ({ id, version, createdAt }));

test("a page of any length at any offset is right, also with rows of the same instant", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.nat(),
        // The larger counts exceed the buffer that the code uses to select a page.
        count: fc.oneof(fc.nat({ max: 40 }), fc.integer({ min: 4_000, max: 12_000 })),
        instants: fc.constantFrom(1, 3, 1_000_000),
        segments: fc.integer({ min: 1, max: 5 }),
        from: fc.double({ min: 0, max: 1.1, noNaN: true }),
        size: fc.constantFrom(1, 7, 500),
        inOrder: fc.boolean(),
        areAll: fc.boolean(),
      }),
      ({ seed, count, instants, segments, from, size, inOrder, areAll }) => {
        const random = randomSequence(seed);
        const rows = Array.from({ length: count }, (_, i) => rowAt(i + 1, Math.floor(random() * instants)));
        const parts = Map.groupBy(rows, () => Math.floor(random() * (segments + 1)));
        const unflushed = parts.get(segments) ?? [];
        const isMatch = (id: number): boolean => areAll || id % 5 !== 0;
        const found = [...parts].flatMap(([at, part]) =>
          at === segments ? [] : [matchesIn(part, isMatch, inOrder && at % 3 !== 2)],
        );
        const total = found.reduce((sum, one) => sum + one.rows.length, unflushed.length);
        const matches: Matches = { segments: found, unflushed, total, looked: 0 };
        const isUnflushed = new Set(unflushed);
        const all = listed(rows.filter((one) => isUnflushed.has(one) || isMatch(one.id)));
        const offset = Math.floor(from * count);
        expect(pageOf(matches, offset, size)).toEqual(all.slice(offset, offset + size));
      },
    ),
    { numRuns: 60 },
  );
});

const columns = fc
  .record({
    // The fast sort packs a date and a row number into one number. The third array has dates too far apart for this, so another sort runs.
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
