/** Tests that after any writes, flushes and merges, a request finds the same total, ids and order as a plain filter over the records. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Criteria, canMeet } from "#shared/company-index/criteria.ts";
import { noPartOverrides } from "#shared/company-index/pieces.ts";
import {
  type IndexEntry,
  type IndexRow,
  isTombstone,
  type NoteEntry,
  type NoteText,
} from "#shared/company-index/record.ts";
import { deadRows, deadUnder, LoadedSegment, SegmentTexts } from "#shared/company-index/search/loaded-segment.ts";
import { findMatches } from "#shared/company-index/search/match.ts";
import { inOrder, pageOf } from "#shared/company-index/search/page.ts";
import { columnsOf, type RowWithNotes } from "#shared/company-index/segment.ts";
import { decodeNotes, decodeOverrides, flushedVersions, newestUnflushed } from "#shared/company-index/versions.ts";
import { mergeParts } from "#shared/company-index/write/merge.ts";
import { sortedByGeohash } from "#shared/company-index/write/order.ts";
import { buildSegments, encodePartOverrides } from "#shared/company-index/write/publish.ts";
import { sized } from "../harness/tier.ts";

/** Maximum number of rows of a segment. It is small, so that a few rows already fill several segments. */
const MAX_ROWS = 3;

interface Model {
  readonly prospects: Map<number, IndexEntry>;
  readonly notes: Map<number, NoteEntry>;
  parts: ReturnType<typeof storedPart>[];
  entries: IndexEntry[];
  noteEntries: NoteEntry[];
  /** Entries that a flush has moved into the index but has not deleted yet. A request may still see these entries and must ignore them. */
  leftover: { entries: IndexEntry[]; noteEntries: NoteEntry[] };
}

type Versioned = { id: number; version: number };

function storedPart(
  rows: Iterable<RowWithNotes>,
  looseNotes: readonly NoteText[],
  prospects: Versioned[],
  notes: Versioned[],
) {
  const segments = [...buildSegments(rows, MAX_ROWS)].map(({ groups, zone, rows: count }, i) => {
    const columns = columnsOf(String(i), groups);
    const counts = { main: 1, geo: 1, text: 1 };
    const segment = new LoadedSegment({ id: String(i), rows: count, counts, zone }, columns.main);
    segment.geo = columns.geo;
    segment.text = new SegmentTexts(columns.text);
    return { segment, columns };
  });
  const encoded = encodePartOverrides(prospects, notes, looseNotes);
  const { overrides } = encoded;
  return {
    segments,
    overrides: overrides === undefined ? noPartOverrides.overrides : decodeOverrides("overrides", overrides),
    looseNotes: encoded.looseNotes === undefined ? [] : decodeNotes("notes", encoded.looseNotes),
  };
}

/**
 * Models a flush: it makes a sorted part of the new entries, and of older entries that a killed flush has not deleted. All these entries
 * remain readable until a later step deletes them.
 */
function flush(model: Model): void {
  const entries = [...model.leftover.entries, ...model.entries];
  const noteEntries = [...model.leftover.noteEntries, ...model.noteEntries];
  const { prospects, notes } = newestUnflushed(flushedVersions(model.parts), entries, noteEntries);
  const rows = [...prospects.values()].flatMap((entry) => (isTombstone(entry) ? [] : [{ row: entry, notes: [] }]));
  const loose = [...notes.values()].flatMap(({ text, ...note }) => (text === null ? [] : [{ ...note, text }]));
  const noteVersions = [...notes.values()].map(({ noteId, version }) => ({ id: noteId, version }));
  model.parts.push(storedPart(sortedByGeohash(rows), loose, [...prospects.values()], noteVersions));
  model.leftover = { entries, noteEntries };
  model.entries = [];
  model.noteEntries = [];
}

/** Models a merge of parts. The service merges only after the flush has deleted all its entries. */
function merge(model: Model, from: number, count: number): void {
  if (model.leftover.entries.length + model.leftover.noteEntries.length > 0) return;
  const chosen = model.parts.slice(from, from + count);
  if (chosen.length === 0) return;
  const parts = chosen.map(({ segments, ...part }, i) => ({
    ...part,
    age: i,
    segments: segments.map(
      ({ columns }) =>
        () =>
          columns,
    ),
  }));
  const { rows, looseNotes, prospects, notes } = mergeParts(parts, from === 0);
  model.parts.splice(from, chosen.length, storedPart(rows, looseNotes, [...prospects], [...notes]));
}

function read(model: Model, criteria: Criteria) {
  const parts = flushedVersions(model.parts);
  const { entries, noteEntries, leftover } = model;
  const delta = newestUnflushed(parts, [...entries, ...leftover.entries], [...noteEntries, ...leftover.noteEntries]);
  const segments = model.parts.flatMap((part, age) =>
    part.segments
      // A search for words reads every segment. Other requests skip a segment if its zone map shows that no row can match.
      .filter(({ segment }) => criteria.words.length > 0 || canMeet(segment.entry.zone, criteria))
      .map(({ segment }) => {
        const dead = deadRows(segment, age, parts.prospectVersions);
        return { segment, age, dead: deadUnder(segment, dead, delta) };
      }),
  );
  return findMatches({ ...parts, segments, delta }, criteria);
}

/** Computes the expected ids with a plain filter over the records, without code of the index. */
function expected({ prospects, notes }: Model, { words, ...criteria }: Criteria): number[] {
  const { box, statusIds, assigneeIds, tagIds, cities, sourceIds, createdFrom, createdTo } = criteria;
  const live = [...prospects.values()].filter((entry): entry is IndexRow => !isTombstone(entry));
  return live
    .filter((row) => {
      const texts = [...notes.values()].filter(({ prospectId, text }) => prospectId === row.id && text !== null);
      const all = [row.text, ...texts.map(({ text }) => text)].join("\n");
      const { lat, lng } = row;
      if (box !== undefined || criteria.onMap) {
        if (lat === null || lng === null) return false;
        const [west, south, east, north] = box ?? [-180, -90, 180, 90];
        if (lat < south || lat > north) return false;
        if (west <= east ? lng < west || lng > east : lng < west && lng > east) return false;
      }
      return (
        (statusIds === undefined || statusIds.has(row.statusId)) &&
        (assigneeIds === undefined || assigneeIds.has(row.assignedToUserId)) &&
        (tagIds === undefined || row.tagIds.some((id) => tagIds.has(id))) &&
        (cities === undefined || (row.city !== null && cities.has(row.city))) &&
        (sourceIds === undefined || (row.sourceId !== null && sourceIds.has(row.sourceId))) &&
        row.createdAt >= (createdFrom ?? 0) &&
        row.createdAt <= (createdTo ?? Number.MAX_VALUE) &&
        words.every((w) => all.includes(w.text) || w.digits.some((number) => row.phoneDigits.includes(number)))
      );
    })
    .sort((a, b) => b.createdAt - a.createdAt || b.id - a.id)
    .map(({ id }) => id);
}

const texts = fc.constantFrom("", "ANNA\n1 MAIN ST", "BOB\nDENVER", "ÉMILE 😀\n22 ELM", "MAIN\n303 555", "A\nB");
const noteTexts = fc.constantFrom("DOG", "CAT\nMAIN", "BELL 303");
const fields = fc.record({
  updatedAt: fc.constantFrom(1_767_312_000_000, 1_767_312_000_001),
  createdAt: fc.constantFrom(0, 1, 1_767_225_600_000, 1_767_225_600_001, 1_767_312_000_000),
  statusId: fc.constantFrom(null, 1, 2),
  assignedToUserId: fc.constantFrom(null, 7, 8),
  tagIds: fc.subarray([11, 12]),
  city: fc.constantFrom(null, "", "denver", "aurora"),
  lat: fc.constantFrom(null, -90, 0, 39.7392, 39.73921234567, 90),
  lng: fc.constantFrom(null, -180, 0, -104.9903, 179.9999999, 180),
  sourceId: fc.constantFrom(null, "", "?", "=", "A", "a"),
  appointments: fc.nat(3),
  ahead: fc.constantFrom(
    [],
    [[1_767_312_000_000, 7, 0]] as const,
    [
      [1, 7, 8],
      [1, 0, 0],
    ] as const,
  ),
  text: texts,
  phoneDigits: fc.constantFrom("\n", "3035550100\n", "1\n2"),
});
const id = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constantFrom(2 ** 40, 2 ** 52 - 1));

const steps = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("write" as const), id, row: fields }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete" as const), id }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("note" as const),
      noteId: fc.integer({ min: 1, max: 4 }),
      prospectId: id,
      text: fc.option(noteTexts, { freq: 3 }),
    }),
  },
  { weight: 5, arbitrary: fc.constant({ do: "flush" as const }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("merge" as const), from: fc.nat(3), count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 5,
    // `most` is the number of entries that the flush deletes before it is killed.
    arbitrary: fc.record({
      do: fc.constant("clean" as const),
      at: fc.nat(9),
      most: fc.constantFrom(1, 3, 100, 100, 100),
    }),
  },
);

type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

function apply(model: Model, step: Step): void {
  switch (step.do) {
    case "write":
      write(model, step.id, step.row);
      break;
    case "delete":
      remove(model, step.id);
      break;
    case "note":
      writeNote(model, step.noteId, step.prospectId, step.text);
      break;
    case "flush":
      flush(model);
      break;
    case "merge":
      merge(model, step.from, step.count);
      break;
    case "clean":
      // The flush deletes some entries, in any order, and is then killed.
      for (const left of [model.leftover.entries, model.leftover.noteEntries]) {
        for (let i = 0; i < step.most && left.length > 0; i++) left.splice(step.at % left.length, 1);
      }
  }
}

function remove(model: Model, id: number): void {
  const current = model.prospects.get(id);
  if (current === undefined || isTombstone(current)) return;
  put(model, { id, version: current.version + 1, deleted: true });
}

/** Writes nothing if the prospect is deleted, because a deleted id is never used again. */
function write(model: Model, id: number, row: Omit<IndexRow, "id" | "version">): void {
  const current = model.prospects.get(id);
  if (current !== undefined && isTombstone(current)) return;
  put(model, { id, version: (current?.version ?? 0) + 1, ...row, createdAt: createdOf(current) ?? row.createdAt });
}

const createdOf = (entry: IndexEntry | undefined): number | undefined =>
  entry === undefined || isTombstone(entry) ? undefined : entry.createdAt;

function put(model: Model, entry: IndexEntry): void {
  model.prospects.set(entry.id, entry);
  model.entries.push(entry);
}

function writeNote(model: Model, noteId: number, prospectId: number, text: string | null): void {
  const current = model.notes.get(noteId);
  const owner = current?.prospectId ?? prospectId;
  const prospect = model.prospects.get(owner);
  if (prospect === undefined || isTombstone(prospect)) return;
  if (current === undefined ? text === null : current.text === null) return;
  const entry = { noteId, prospectId: owner, version: (current?.version ?? 0) + 1, text };
  model.notes.set(noteId, entry);
  model.noteEntries.push(entry);
}

const words = [
  { text: "MAIN", digits: [] },
  { text: "😀", digits: [] },
  { text: "É", digits: [] },
  { text: "303", digits: ["303"] },
  { text: "DOG", digits: [] },
  { text: "CAT", digits: [] },
  { text: "BELL", digits: [] },
];
/** Short strings that occur in many texts. Some searches have more than six of them, because the index then searches in another way. */
const parts = [..."MAIN0DOG", "MA", "AI", "AIN", "30"].map((text) => ({ text, digits: /\d/.test(text) ? [text] : [] }));
const everyWord: Criteria[] = [{ words: [] }, ...words.map((word) => ({ words: [word] }))];

const maybe = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary: value });
const someOf = <T>(...values: T[]) => maybe(fc.subarray(values).map((chosen) => new Set(chosen)));
const criteria: fc.Arbitrary<Criteria> = fc.record({
  box: maybe(
    fc.constantFrom<[number, number, number, number]>([-105, 39, -104, 40], [170, -90, -170, 90], [-180, -90, 180, 90]),
  ),
  createdFrom: maybe(fc.constantFrom(1, 1_767_225_600_001)),
  createdTo: maybe(fc.constantFrom(0, 1_767_225_600_000)),
  statusIds: someOf<number | null>(null, 1, 2),
  assigneeIds: someOf<number | null>(null, 7),
  tagIds: someOf(11, 12),
  cities: someOf("denver", "", "nowhere"),
  sourceIds: someOf("", "?", "=", "A", "b"),
  onMap: maybe(fc.boolean()),
  words: fc.oneof(
    fc.array(fc.constantFrom(...words), { maxLength: 2 }),
    fc.array(fc.constantFrom(...words.slice(0, 4), ...parts), { minLength: 7, maxLength: 70, size: "max" }),
  ),
});

function expectFound(model: Model, wanted: Criteria): void {
  const matches = read(model, wanted);
  const ids = expected(model, wanted);
  expect(matches.total).toBe(ids.length);
  expect(pageOf(matches, 0, 1_000).map((place) => place.id)).toEqual(ids);
  expect(pageOf(matches, 2, 3).map((place) => place.id)).toEqual(ids.slice(2, 5));
  expect(Array.from(inOrder(matches), (place) => place.id)).toEqual(ids);
}

const SEQUENCES = sized({ short: 40, wide: 5_000 });

test(`totals, ids and order equal a plain filter over the records, in ${SEQUENCES} random sequences`, {
  tags: "sized",
}, () => {
  fc.assert(
    fc.property(
      fc.array(steps, { minLength: 5, maxLength: 60, size: "max" }),
      fc.array(criteria, { minLength: 4, maxLength: 4 }),
      (todo, asked) => {
        const model: Model = {
          prospects: new Map(),
          notes: new Map(),
          parts: [],
          entries: [],
          noteEntries: [],
          leftover: { entries: [], noteEntries: [] },
        };
        const all = [...everyWord, ...asked];
        for (const [i, step] of todo.entries()) {
          apply(model, step);
          expectFound(model, all[i % all.length] ?? { words: [] });
        }
        for (const wanted of all) expectFound(model, wanted);
      },
    ),
    { numRuns: SEQUENCES },
  );
});
