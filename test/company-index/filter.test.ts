/** Tests that a filter finds the same rows in a stored segment, column by column, and among unflushed entries, one by one. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { circleArea, emptyArea, polygonArea } from "#shared/company-index/areas.ts";
import { type Area, type Criteria, passes } from "#shared/company-index/criteria.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { findMatches } from "#shared/company-index/search/match.ts";
import { NewestVersions } from "#shared/company-index/versions.ts";
import { sortedByGeohash } from "#shared/company-index/write/order.ts";
import { beginningBefore } from "#shared/deadline.ts";
import { DeadlinePassed } from "#shared/errors.ts";
import { sized } from "../harness/tier.ts";
import { plainRow, segmentOf } from "./plain-rows.ts";

const fields = fc.record({
  createdAt: fc.integer({ min: 0, max: 9 }),
  updatedAt: fc.integer({ min: 0, max: 9 }),
  statusId: fc.constantFrom(null, 1, 2, 3),
  // There are more distinct values than a segment's zone map can list. The test therefore also covers segments without this list.
  assignedToUserId: fc.option(fc.integer({ min: 1, max: 40 })),
  tagIds: fc.subarray([11, 12, 13]),
  city: fc.constantFrom(null, "", "denver", "aurora"),
  lat: fc.constantFrom(null, -1, 0, 1, 2),
  lng: fc.constantFrom(null, -180, -1, 0, 1, 180),
});
const someOf = <T>(...values: T[]) =>
  fc.option(
    fc.subarray(values).map((some) => new Set(some)),
    { nil: undefined },
  );
const instant = fc.option(fc.integer({ min: -1, max: 10 }), { nil: undefined, freq: 2 });
const boxes = fc.constantFrom<[number, number, number, number]>([-1, 0, 1, 1], [0, -1, 0, 2], [1, -90, -1, 90]);
/** Polygons and circles whose boundaries go through many of the coordinates above. */
const areas = fc.oneof(
  fc
    .array(fc.tuple(fc.constantFrom(-180, -1, 0, 0.5, 1, 180), fc.constantFrom(-1, 0, 0.5, 1, 2)), {
      minLength: 3,
      maxLength: 8,
    })
    .map(polygonArea),
  fc
    .tuple(fc.constantFrom(-1, 0, 89), fc.constantFrom(-180, 0, 179.5), fc.constantFrom(0, 60_000, 200_000, 1e7))
    .map(([lat, lng, meters]) => circleArea({ lat, lng }, meters)),
  fc.constant(emptyArea),
);
const criteria: fc.Arbitrary<Criteria> = fc.record({
  areas: fc.option(fc.array(areas, { minLength: 1, maxLength: 2 }), { nil: undefined, freq: 2 }),
  box: fc.option(boxes, { nil: undefined }),
  createdFrom: instant,
  createdTo: instant,
  statusIds: someOf<number | null>(null, 1, 2, 3),
  assigneeIds: someOf<number | null>(null, 1, 2, 3, 4, 5, 6, 7, 8, 41),
  tagIds: someOf(11, 12, 99),
  cities: someOf("denver", "", "nowhere"),
  onMap: fc.constantFrom(undefined, true),
  words: fc.constant([]),
});

test("a search stops between two segments when its time is over", async () => {
  let [remainingMs, searched] = [1_000, 0];
  const area: Area = {
    box: [-1, -1, 1, 1],
    contains: () => true,
    rowsInside: () => {
      remainingMs -= 600;
      return Uint32Array.of(++searched);
    },
  };
  const segment = segmentOf([{ row: plainRow({ id: 1, lat: 0, lng: 0 }), notes: [] }]);
  const view = {
    segments: Array.from({ length: 5 }, (_, age) => ({ segment, age, dead: undefined })),
    ...{ noteVersions: new NewestVersions(), looseNotes: [], delta: { prospects: new Map(), notes: new Map() } },
  };
  const search = async () => findMatches(view, { areas: [area], words: [] });
  await expect(beginningBefore(() => remainingMs, search)).rejects.toThrow(DeadlinePassed);
  expect(searched).toBe(2);
  const searchWords = async () => findMatches(view, { words: [{ text: "ann", digits: [] }] });
  await expect(beginningBefore(() => 0, searchWords)).rejects.toThrow(DeadlinePassed);
});

const byList = (a?: IndexRow, b?: IndexRow): number =>
  (b?.createdAt ?? 0) - (a?.createdAt ?? 0) || (b?.id ?? 0) - (a?.id ?? 0);

test("filters find each matching row exactly once", { tags: "sized" }, () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fields, fc.constantFrom(0, 0, 0, 1)), { minLength: 1, maxLength: 200, size: "max" }),
      fc.array(criteria, { minLength: 8, maxLength: 8 }),
      fc.boolean(),
      (given, asked, anyDead) => {
        const entries = sortedByGeohash(
          given.map(([row], at) => ({ row: plainRow({ ...row, id: at + 1 }), notes: [] })),
        );
        const rows = entries.map(({ row }) => row);
        const dead = anyDead ? Uint8Array.from(given, ([, isDead]) => isDead) : undefined;
        const segment = segmentOf(entries);
        const delta = { prospects: new Map(), notes: new Map() };
        const beside = { noteVersions: new NewestVersions(), looseNotes: [], delta };
        // Some criteria are searched twice, because the second search reuses the lists of matching rows that the first search has built.
        for (const wanted of [{ words: [] }, ...asked, ...asked.slice(4)]) {
          const { segments, total } = findMatches({ ...beside, segments: [{ segment, age: 0, dead }] }, wanted);
          const found = segments.flatMap((matches) => [...matches.rows]).sort((a, b) => a - b);
          const live = rows.flatMap((row, at) => (dead?.[at] !== 1 && passes(wanted, row, () => false) ? [at] : []));
          expect(found).toEqual(live);
          expect(total).toBe(live.length);
          for (const { rows: inOrder, inListOrder } of segments) {
            if (inListOrder) expect([...inOrder]).toEqual([...inOrder].sort((a, b) => byList(rows[a], rows[b])));
          }
        }
      },
    ),
    { numRuns: sized({ short: 120, wide: 400 }) },
  );
});
