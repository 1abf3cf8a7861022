/**
 * Tests that a search for several words also finds a note that was written to the index before the newest version of its prospect. Also
 * tests that the set of matching rows contains each row once.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Criteria } from "#shared/company-index/criteria.ts";
import { deadRows } from "#shared/company-index/search/loaded-segment.ts";
import { findMatches } from "#shared/company-index/search/match.ts";
import { RowSet } from "#shared/company-index/search/row-filter.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { flushedVersions } from "#shared/company-index/versions.ts";
import { plainRow, segmentOf } from "./plain-rows.ts";

function entryOf(id: number, version: number, statusId: number, text: string, notes: readonly string[]): RowWithNotes {
  const row = plainRow({ id, version, createdAt: id, statusId, text });
  return { row, notes: notes.map((note, i) => ({ prospectId: id, noteId: 10 * id + i, version: 1, text: note })) };
}

describe("a note in an older part than its prospect's row", () => {
  const older = segmentOf([entryOf(1, 1, 7, "ANNA", ["DOG IN THE YARD"]), entryOf(2, 1, 7, "CLARA", ["CAT"])]);
  const newer = segmentOf([entryOf(1, 2, 8, "BERTA", [])]);
  const overrides = {
    prospects: { ids: Float64Array.of(1), versions: Float64Array.of(2) },
    notes: { ids: new Float64Array(), versions: new Float64Array() },
  };
  const none = { prospects: overrides.notes, notes: overrides.notes };
  const parts = flushedVersions([
    { overrides: none, looseNotes: [] },
    { overrides, looseNotes: [] },
  ]);
  const segments = [older, newer].map((segment, age) => ({
    segment,
    age,
    dead: deadRows(segment, age, parts.prospectVersions),
  }));
  const found = (criteria: Omit<Criteria, "words">, ...texts: string[]): number[] => {
    const words = texts.map((text) => ({ text, digits: [] }));
    const delta = { prospects: new Map(), notes: new Map() };
    const matches = findMatches({ ...parts, segments, delta }, { ...criteria, words });
    return matches.segments.flatMap(({ inView, rows }) => [...rows].map((row) => inView.segment.main.ids[row] ?? 0));
  };

  test.each([
    ["one word of the note", {}, ["YARD"], [1]],
    ["one word in the row, one in the note", {}, ["BERTA", "DOG"], [1]],
    ["one word in the note, one in the row", {}, ["DOG", "BERTA"], [1]],
    ["a word that only the older row has", {}, ["ANNA"], []],
    ["one word in the older row, one in the note", {}, ["ANNA", "DOG"], []],
    ["the status of the newer row, which the older part does not have", { statusIds: new Set([8]) }, ["DOG"], [1]],
    ["the status of the older row", { statusIds: new Set([7]) }, ["DOG"], []],
    ["words of two prospects", {}, ["BERTA", "CAT"], []],
    ["a neighbour's two words", {}, ["CLARA", "CAT"], [2]],
  ])("a search by %s finds prospects by their newest rows and notes", (_, criteria, texts, ids) => {
    // The searches are repeated, because the first searches compare plain texts and later searches use word indexes.
    for (let i = 0; i < 3; i++) expect(found(criteria, ...texts)).toEqual(ids);
  });
});

test("a row set keeps each added row once, for few and for many rows", () => {
  const row = fc.oneof(fc.integer({ min: 0, max: 4_095 }), fc.integer({ min: 0, max: 40 }));
  fc.assert(
    fc.property(fc.array(row, { maxLength: 300, size: "max" }), fc.array(row), (added, asked) => {
      const [rows, expected] = [new RowSet(4_096), new Set(added)];
      for (const one of added) rows.add(one);
      expect(rows.size).toBe(expected.size);
      expect([...rows.rows()]).toEqual([...expected]);
      for (const one of [...added, ...asked]) expect(rows.has(one)).toBe(expected.has(one));
    }),
  );
});
