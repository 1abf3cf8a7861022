/** Tests that a segment is read back exactly, and that reading damaged bytes is an error. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import {
  columnsOf,
  decodeGeo,
  decodeMain,
  decodeText,
  encodeSegment,
  type RowWithNotes,
  rowsOf,
} from "#shared/company-index/segment.ts";
import { cutIntoSegments, SEGMENT_ROWS } from "#shared/company-index/write/order.ts";
import { present } from "../harness/shapes.ts";
import { sized } from "../harness/tier.ts";

const id = fc.integer({ min: 1, max: 2 ** 52 - 1 });
const degrees = (limit: number) =>
  fc.option(
    fc.oneof(
      fc.double({ min: -limit, max: limit, noNaN: true }),
      fc.integer({ min: -limit * 1e6, max: limit * 1e6 }).map((n) => n / 1e6),
    ),
  );
const texts = fc.string({ unit: "grapheme", maxLength: 30 });
const entry: fc.Arbitrary<RowWithNotes> = fc
  .record({
    row: fc.record({
      id,
      version: fc.integer({ min: 1, max: 1_000_000 }),
      createdAt: fc.integer({ min: 0, max: 4_102_444_800_000 }),
      updatedAt: fc.integer({ min: 0, max: 4_102_444_800_000 }),
      statusId: fc.option(id),
      assignedToUserId: fc.option(id),
      tagIds: fc.array(id, { maxLength: 4 }),
      city: fc.option(texts),
      lat: degrees(90).map((value) => (value === null ? null : value + 0)),
      lng: degrees(180).map((value) => (value === null ? null : value + 0)),
      sourceId: fc.option(fc.oneof(texts, fc.constantFrom("?", "="))),
      appointments: fc.nat(200),
      ahead: fc.array(fc.tuple(fc.integer({ min: 0, max: 4_102_444_800_000 }), fc.nat(9), id), { maxLength: 4 }),
      text: texts,
      phoneDigits: fc.constantFrom("\n", "3035550100\n720", "1\n"),
    }),
    notes: fc.array(fc.record({ noteId: id, version: fc.integer({ min: 1, max: 9 }), text: texts }), { maxLength: 3 }),
  })
  .map(({ row, notes }) => ({ row, notes: notes.map((note) => ({ ...note, prospectId: row.id })) }));

test("rows and notes are read back unchanged", { tags: "sized" }, () => {
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 20 }), (entries) => {
      expect([...rowsOf(columnsOf("segment", encodeSegment(entries)))]).toEqual(entries);
    }),
    { numRuns: sized({ short: 200, wide: 1_000 }) },
  );
});

const sample = fc.sample(entry, { numRuns: 50, seed: 3 });

test("a damaged byte anywhere is an error, never other content", { tags: "sized" }, () => {
  // The test damages each byte of a segment once, and decodes the whole segment each time. The duration therefore grows with the square of
  // the number of rows.
  const groups = encodeSegment(sample.slice(0, sized({ short: 10, wide: 50 })));
  for (const [group, decode] of Object.entries({ main: decodeMain, geo: decodeGeo, text: decodeText })) {
    const bytes = groups[group === "main" ? "main" : group === "geo" ? "geo" : "text"];
    const good = decode(group, bytes);
    for (let at = 0; at < bytes.length; at++) {
      const damaged = Uint8Array.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 0x10;
      let read: unknown = good;
      try {
        read = decode(group, damaged);
      } catch (error) {
        if (!(error instanceof IndexUnreadable)) throw error;
      }
      // A few bits in the header of a compressed block have no meaning. A change of such a bit leaves the content as it is.
      if (read !== good) expect(read).toEqual(good);
    }
    expect(() => decode(group, bytes.subarray(0, -1))).toThrow(IndexUnreadable);
  }
});

test("rows are cut into segments by their number and by the length of their texts", () => {
  const first = present(sample[0]);
  const rows = (count: number, text: string) =>
    Array<RowWithNotes>(count).fill({ ...first, row: { ...first.row, text } });
  const sizes = (entries: RowWithNotes[]) => [...cutIntoSegments(entries)].map(({ length }) => length);
  expect(sizes(rows(2 * SEGMENT_ROWS + 1, ""))).toEqual([SEGMENT_ROWS, SEGMENT_ROWS, 1]);
  expect(sizes(rows(5, "x".repeat(1_200_000)))).toEqual([2, 2, 1]);
  expect(sizes([])).toEqual([]);
});
