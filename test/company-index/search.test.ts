/** Tests that a search finds exactly the texts with its words, with and without a word index, also in a note of an older part. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Criteria } from "#shared/company-index/criteria.ts";
import { deadRows, SegmentTexts, type TextFinder } from "#shared/company-index/search/loaded-segment.ts";
import { findMatches } from "#shared/company-index/search/match.ts";
import { Patterns, PlainTexts } from "#shared/company-index/search/plain-texts.ts";
import { RowSet } from "#shared/company-index/search/row-filter.ts";
import { findAll } from "#shared/company-index/search/text-search.ts";
import { Words } from "#shared/company-index/search/words.ts";
import { decodeText, encodeSegment, type RowWithNotes } from "#shared/company-index/segment.ts";
import { flushedVersions, NewestVersions } from "#shared/company-index/versions.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { sized } from "../harness/tier.ts";
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
  const parts = flushedVersions([none, overrides].map((part) => ({ overrides: part, looseNotes: [] })));
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

test("a set of rows contains each added row once, for few and for many rows", () => {
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

function plain(texts: readonly string[]): PlainTexts {
  const pieces = texts.map((text) => Buffer.from(`${text}\n`));
  const starts = new Uint32Array(texts.length + 1);
  for (const [i, { length }] of pieces.entries()) starts[i + 1] = (starts[i] ?? 0) + length;
  return new PlainTexts(Buffer.concat(pieces), starts);
}

const foundBy = (words: PlainTexts | Words, wanted: string): number[] => {
  const found = new Set<number>();
  words.visitTextsWith(Buffer.from(wanted), (text) => found.add(text));
  return [...found].sort((a, b) => a - b);
};

const including = (texts: readonly string[], wanted: string): number[] =>
  texts.flatMap((text, i) => (text.includes(wanted) ? [i] : []));

/** Few letters of one to four bytes, so that words repeat, and white-space characters of which only some end a word. */
const letters = fc.constantFrom(..."AB1-É😀\u0000\t\u00a0", "E\u0301");
const word = fc.string({ unit: letters, minLength: 1, maxLength: 6 });
const texts = fc.array(
  fc.string({ unit: fc.oneof({ weight: 5, arbitrary: letters }, fc.constantFrom(" ", "\n")), maxLength: 30 }),
  { maxLength: 120, size: "max" },
);

test("a search finds each text that contains the word, and no other text", { tags: "sized" }, () => {
  fc.assert(
    fc.property(texts, fc.array(word, { minLength: 5, maxLength: 5 }), fc.nat(), (given, wanted, at) => {
      const [stored, words] = [plain(given), new Words(plain(given))];
      // Random words rarely occur in the texts. The test therefore also searches for a part of a word that does occur.
      const first = (given[at % given.length] ?? "").split(/[ \n]/)[0] ?? "";
      const some = [...first].slice(at % 3).join("");
      for (const each of some === "" ? wanted : [...wanted, some]) {
        expect(foundBy(words, each)).toEqual(including(given, each));
        expect(foundBy(stored, each)).toEqual(including(given, each));
      }
    }),
    { numRuns: sized({ short: 400, wide: 1_500 }) },
  );
});

test("a search for many words finds each of them in each text", { tags: "sized" }, () => {
  const short = fc.string({ unit: letters, minLength: 1, maxLength: 3 });
  const patterns = fc.array(fc.array(short, { maxLength: 3 }), { minLength: 1, maxLength: 32, size: "max" });
  fc.assert(
    fc.property(texts, patterns, (given, wanted) => {
      const expected = wanted.map((some) => given.map((text) => some.some((one) => text.includes(one))));
      for (const stored of [plain(given), new Words(plain(given))]) {
        const found = given.map(() => 0);
        stored.visitTextsWithSome(new Patterns(wanted), (text, mask) => {
          found[text] = (found[text] ?? 0) | mask;
        });
        expect(wanted.map((_, i) => found.map((mask) => ((mask >>> i) & 1) === 1))).toEqual(expected);
      }
    }),
    { numRuns: sized({ short: 300, wide: 1_500 }) },
  );
});

test("a word index holds more than 65 536 texts, and so many words that its hash table must grow", () => {
  const random = randomSequence(7);
  const name = (): string => Math.floor(random() * 40_000).toString(36);
  const text = (_: unknown, i: number) => `${name()} ${name()}@${i % 9} ${i % 1_000 === 0 ? "RARE" : ""}`;
  const given = Array.from({ length: 70_000 }, text);
  const words = new Words(plain(given));
  for (const wanted of ["a", "zz", "a@1", "k2", "@8", "RARE", "RAR", "7x@", "none", "é"]) {
    expect(foundBy(words, wanted), wanted).toEqual(including(given, wanted));
  }
});

test("a word index holds all words of one long text", () => {
  const given = [Array.from({ length: 3_000 }, (_, i) => i.toString(36)).join(" "), "none of them"];
  const words = new Words(plain(given));
  for (let i = 0; i < 3_000; i++) expect(foundBy(words, i.toString(36))).toEqual(including(given, i.toString(36)));
});

const note = fc.record({ noteId: fc.integer({ min: 1, max: 2 ** 52 - 1 }), version: fc.constant(3), text: word });
const entries = fc.array(fc.record({ text: word, notes: fc.array(note, { maxLength: 3 }) }), { minLength: 1 });

const stored = ({ text, notes }: { text: string; notes: Omit<RowWithNotes["notes"][number], "prospectId">[] }) => {
  const row = plainRow({ id: 1, text });
  return { row, notes: notes.map((one) => ({ ...one, prospectId: 1 })) };
};

test("a search distinguishes rows and notes, with and without a word index", { tags: "sized" }, () => {
  fc.assert(
    fc.property(entries, word, (given, wanted) => {
      const segment = new SegmentTexts(decodeText("text", encodeSegment(given.map(stored)).text));
      const expected = given.flatMap(({ text, notes }, row) => [
        ...(text.includes(wanted) ? [`row ${row}`] : []),
        ...notes.flatMap(({ noteId, text: body }) => (body.includes(wanted) ? [`note ${noteId} of ${row}`] : [])),
      ]);
      const search = (): string[] => {
        const found = new Set<string>();
        const inTexts: TextFinder = (texts, visit) =>
          texts.visitTextsWith(Buffer.from(wanted), (text) => visit(text, 1));
        segment.find(inTexts, (text) => {
          const [row, at] = [segment.rowOf[text], segment.noteOf(text)];
          found.add(at < 0 ? `row ${row}` : `note ${segment.noteIds[at]} of ${row}`);
        });
        return [...found].sort();
      };
      expect(segment.unindexedBytes).toBe(0);
      expect(search()).toEqual(expected.toSorted());
      expect(segment.unindexedBytes).toBeGreaterThan(0);
      segment.makeWords();
      expect(segment.unindexedBytes).toBe(0);
      expect(search()).toEqual(expected.toSorted());
    }),
    { numRuns: sized({ short: 150, wide: 500 }) },
  );
});

test.each(["", "A B", "A\nB", " A"])("%j is not one word, and is rejected", (text) => {
  const delta = { prospects: new Map(), notes: new Map() };
  const view = { segments: [], noteVersions: new NewestVersions(), looseNotes: [], delta };
  expect(() => findAll(view, [{ text, digits: [] }])).toThrow(RangeError);
});
