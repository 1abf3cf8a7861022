/** Tests that the check `verify` finds every kind of damage to a company's search index, and that a rebuild repairs it. */
import { expect, test } from "vitest";
import type { Zone } from "#shared/company-index/criteria.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { type Part, partManifestItem } from "#shared/company-index/manifest.ts";
import type { IndexRow, Records } from "#shared/company-index/record.ts";
import { prospectDelta } from "#shared/company-index/write/entries.ts";
import { RETIRED_MS } from "#shared/company-index/write/garbage-collection.ts";
import * as keys from "#shared/db/keys.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { indexEntry } from "#shared/prospects/indexed.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import {
  corrupt,
  type IndexInHand,
  indexInHand,
  pieceOf,
  putManifest,
  rewriteOverrides,
  rewriteRows,
} from "./damage.ts";
import { type IndexedCompany, indexedCompanies, type Staged } from "./indexed-company.ts";

const db = faultyDynamoDb();
const { clock, newCompany, stagedCompany, flushAll, rebuildOf, verify } = indexedCompanies(db);

type Inflict = (index: IndexInHand, staged: Staged, company: IndexedCompany) => Promise<unknown>;

const lost =
  (name: string): Inflict =>
  (i) =>
    i.table.batchRemove([pieceOf(i, i.segment.id, name)]);
/** Changes the manifest of the oldest part, which the first flush wrote. */
const oldest =
  (fieldsOf: (index: IndexInHand) => Partial<Part>): Inflict =>
  (i) =>
    putManifest(i, [{ ...i.oldest, ...fieldsOf(i) }, ...i.manifest.parts.slice(1)]);
/** Replaces the row of the sixth prospect in its segment. */
const sixth =
  (change: (row: IndexRow) => IndexRow[]): Inflict =>
  (i, { ids }) =>
    rewriteRows(i, (rows) =>
      rows.flatMap((one) => (one.row.id === ids[5] ? change(one.row).map((row) => ({ ...one, row })) : [one])),
    );

/** Changes of a zone map, after which it does not cover the rows of its segment. */
const narrow: Partial<Zone>[] = [
  { box: null },
  { box: [-105, 39, -104.99, 39.01] },
  { createdAt: [0, 0] },
  { ids: [1, 1] },
  { statusIds: [null] },
  { assigneeIds: [] },
];

/**
 * Each damage has a description, a pattern for the fault that `verify` must report, and a function that damages the index. In
 * a pattern, `{a}` means the id of the first prospect, `{b}` of the second, and so on.
 */
const damages: [what: string, fault: string, inflict: Inflict][] = [
  ["ids of a segment are missing", "lacks an item of main", lost("main")],
  ["texts of a segment are missing", "lacks an item of text", lost("text")],
  [
    "versions of a part are missing",
    "lacks an item of overrides",
    (i) => putManifest(i, [...i.manifest.parts.slice(0, -1), { ...i.newest, fewOverrides: undefined, overrides: 1 }]),
  ],
  ["coordinates are damaged", "geo of \\S+ is damaged", (i) => corrupt(i, pieceOf(i, i.segment.id, "geo"))],
  [
    "versions of a part are damaged",
    "overrides of \\S+ is damaged",
    (i) => corrupt(i, keys.partManifest(i.companyId, i.newest.id), "fewOverrides"),
  ],
  [
    "the manifest of a part is missing",
    "lacks the manifest of part",
    (i) => i.table.batchRemove([keys.partManifest(i.companyId, i.newest.id)]),
  ],
  [
    "the manifest of a part has an unknown format",
    "the manifest of part \\S+ of company \\d+ has format 9, and this release reads format 2: a later release has written it",
    (i) => i.table.batchPut([{ ...partManifestItem(i.companyId, i.oldest, 0, []), format: 9 }]),
  ],
  ["the head names a part twice", "contains \\S+ twice", (i) => putManifest(i, [i.oldest, ...i.manifest.parts])],
  [
    "rows are doubled",
    "prospect {f} is in the index 2 times",
    (i) => putManifest(i, [...i.manifest.parts, { ...i.oldest, id: "copy", fewOverrides: undefined, looseNotes: 0 }]),
  ],
  ["a row is doubled within its segment", "prospect {f} is in the index 2 times", sixth((row) => [row, row])],
  [
    "a row is newer than it should be",
    "prospect {f} is missing from the index|prospect {f} has version 9 in the index and 1 in its row",
    sixth((row) => [{ ...row, version: 9 }]),
  ],
  [
    "an entry is older than its row",
    "prospect {a} has version 1 in the index and 2 in its row",
    (i, { ids }) => i.table.batchRemove([keys.prospectDelta(i.companyId, ids[0] ?? 0, 2)]),
  ],
  [
    "an entry is newer than its row",
    "prospect {b} has version 9 in the index and 1 in its row",
    async (i, { ids }, company) => {
      const row = { ...(await company.prospect(ids[1] ?? 0)), version: 9 };
      await i.table.transact(prospectDelta(i.companyId, indexEntry(row), null));
    },
  ],
  [
    "a deleted prospect is live",
    "prospect {d} is deleted but still in the index",
    (i, { ids }) =>
      rewriteOverrides(i, (stored) => ({ ...stored, prospects: stored.prospects.filter(({ id }) => id !== ids[3]) })),
  ],
  ["a row was never written", "prospect 77 has no row", sixth((row) => [{ ...row, id: 77 }])],
  [
    "a note's entry is lost",
    "note \\d+ of prospect {a} has version 1 in the index and 2 in its row",
    (i, { ids, noteOfA }) => i.table.batchRemove([keys.noteDelta(i.companyId, ids[0] ?? 0, noteOfA, 2)]),
  ],
  [
    "a deleted note is live",
    "note \\d+ of prospect {b} has no row",
    (i) => rewriteOverrides(i, (stored) => ({ ...stored, notes: [] })),
  ],
  [
    "a manifest has a wrong number of rows in a segment",
    "claims 99 rows",
    oldest(({ segment }) => ({ segments: [{ ...segment, rows: 99 }] })),
  ],
  ["a manifest has a wrong number of rows in a part", "claims 99 rows", oldest(() => ({ rows: 99 }))],
  ...narrow.map((zone): [string, string, Inflict] => [
    `the zone map says ${JSON.stringify(zone)}`,
    "the zone map of segment \\S+ does not cover its rows",
    oldest(({ segment }) => ({ segments: [{ ...segment, zone: { ...segment.zone, ...zone } }] })),
  ]),
  ["rows are out of order", "is out of order", (i) => rewriteRows(i, (rows) => rows.toReversed())],
];

test("a check finds no fault in a sound index, and counts its records", async () => {
  const { company } = await stagedCompany();
  const counts = { prospects: 8, notes: 1, segments: 2, parts: 2, unflushed: 5 };
  expect(await verify(company)).toEqual({ ...counts, faults: [], unexamined: 0 });
  expect(await verify(newCompany())).toMatchObject({ prospects: 0, parts: 0, faults: [] });
});

test.each(damages)("a check finds that %s; a rebuild repairs it, and flushes continue", async (_, fault, inflict) => {
  const { company, ...staged } = await stagedCompany();
  await inflict(await indexInHand(db.direct, company.id), staged, company);
  const { faults } = await verify(company);
  const pattern = fault.replace(/\{(.)\}/g, (__, letter: string) => String(staged.ids[letter.charCodeAt(0) - 97]));
  expect(faults).toContainEqual(expect.stringMatching(pattern));
  await rebuildOf(company);
  await company.expectListsExact();
  // When `RETIRED_MS` has passed, the next flush deletes the old part. It must not fail, although the test may have damaged
  // the manifest that lists the rows of this part.
  clock.ms += RETIRED_MS + 1;
  await company.change(staged.ids[0] ?? 0, 70);
  await flushAll(company);
  expect((await verify(company)).faults).toEqual([]);
  await company.expectListsExact();
});

test("a check finds that the entry of a deletion or a change was removed before it was flushed", async () => {
  const { company, ids } = await stagedCompany();
  await flushAll(company);
  await company.remove(ids[0] ?? 0);
  await company.change(ids[1] ?? 0, 80);
  const created = await company.create(81);
  await db.direct.batchRemove((await readUnflushed(db.direct, company.id)).keys);
  expect((await verify(company)).faults.toSorted()).toEqual(
    [
      `prospect ${ids[0]} is deleted but still in the index`,
      `prospect ${ids[1]} has version 1 in the index and 2 in its row`,
      `prospect ${created} is missing from the index`,
    ].sort(),
  );
  await rebuildOf(company);
  expect((await verify(company)).faults).toEqual([]);
});

test("a check reports no record that is written during each comparison", async () => {
  const { company, ids } = await stagedCompany();
  let seed = 0;
  const write = (): Promise<void> => company.change(ids[0] ?? 0, ++seed);
  const records = indexRecords(db.direct);
  const racing: Records = {
    readAll: async function* (companyId) {
      await write();
      yield* records.readAll(companyId);
    },
    // `verify` reads the rows a second time, so that it can distinguish damage from a concurrent write. The prospect is written just
    // before this second read.
    readSome: async (...asked) => {
      if (++reads % 2 === 0) await write();
      return records.readSome(...asked);
    },
  };
  let reads = 0;
  expect((await verifyIndex(db.direct, racing, company.id, { pauseMs: 1 })).faults).toEqual([]);
  expect(reads).toBe(6);
});

test("a check reports no record that is written, flushed, merged and rebuilt meanwhile", async () => {
  const { company, ids, noteOfA } = await stagedCompany();
  let isOver = false;
  const write = async (): Promise<void> => {
    for (let turn = 1; !isOver; turn++) {
      await company.change(ids[turn % 3] ?? 0, turn);
      await company.changeNote(ids[0] ?? 0, noteOfA, turn);
      const created = await company.create(turn);
      const note = await company.addNote(created, turn);
      if (turn % 2 === 0) await company.removeNote(created, note);
      if (turn % 4 === 0) await company.remove(created);
      if (turn % 5 === 0) await flushAll(company);
    }
  };
  const check = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) expect((await verify(company, 30)).faults).toEqual([]);
    await rebuildOf(company, db.direct, { settleMs: 100 });
    expect((await verify(company, 30)).faults).toEqual([]);
  };
  await Promise.all([
    write(),
    check().finally(() => {
      isOver = true;
    }),
  ]);
  expect((await verify(company)).faults).toEqual([]);
});
