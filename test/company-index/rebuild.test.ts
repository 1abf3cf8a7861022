/** Tests which records a rebuilt part overrides, so that no older version is found, and which damages a check of the index names. */
import { expect, test } from "vitest";
import { partManifestItem } from "#shared/company-index/manifest.ts";
import { noPartOverrides } from "#shared/company-index/pieces.ts";
import { overridesToList } from "#shared/company-index/repair/rebuild.ts";
import { NewestVersions } from "#shared/company-index/versions.ts";
import { RETIRED_MS } from "#shared/company-index/write/garbage-collection.ts";
import { discardPart, storePart } from "#shared/company-index/write/publish.ts";
import * as keys from "#shared/db/keys.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import { corrupt, indexInHand, rewriteOverrides, rewriteRows } from "./damage.ts";
import { indexedCompanies } from "./indexed-company.ts";

const db = faultyDynamoDb();
const { clock, newCompany, stagedCompany, flushAll, rebuildOf, verify } = indexedCompanies(db);

function versions(...known: [id: number, version: number][]): NewestVersions {
  const all = new NewestVersions();
  for (const [id, version] of known) all.add(id, version, 0);
  return all;
}
const listed = (...ids: number[]) => ({ ids: Float64Array.from(ids), versions: Float64Array.from(ids, () => 1) });
const known = { prospects: versions([1, 5], [2, 6], [3, 7], [4, 8]), notes: versions([11, 5], [12, 6], [13, 7]) };
const note = (noteId: number, version: number) => ({ noteId, prospectId: 1, version, text: "DOG" });

test("a rebuilt part lists the records of earlier and current unflushed entries, and of newer parts", () => {
  const others = {
    unflushed: [
      { entries: [{ id: 1, version: 4, deleted: true } as const], notes: [note(11, 1)] },
      { entries: [{ id: 2, version: 9, deleted: true } as const], notes: [note(12, 9)] },
    ],
    partOverrides: [{ ...noPartOverrides, overrides: { prospects: listed(3, 99), notes: listed(13, 98) } }],
  };
  expect(overridesToList(known, others, new Set())).toEqual({
    prospects: [5, 6, 7].map((version, i) => ({ id: i + 1, version })),
    notes: [5, 6, 7].map((version, i) => ({ id: i + 11, version })),
  });
});

test("a deleted note is listed with a version that is one higher than its newest version in entries and parts", () => {
  const others = { unflushed: [{ entries: [], notes: [note(21, 3), note(21, 2), note(22, 1)] }], partOverrides: [] };
  expect(overridesToList(known, others, new Set([21])).notes).toMatchObject([{ id: 21, version: 4 }]);
});

test("a damaged manifest is a fault that a rebuild repairs, and its part does not stop the garbage collection", async () => {
  const company = newCompany();
  const faults = async () => (await verify(company)).faults;
  const { ids } = await company.stage(flushAll);
  const index = await indexInHand(db.direct, company.id);
  const damaged = keys.partManifest(company.id, index.oldest.id);
  await corrupt(index, damaged);
  expect(await faults()).toEqual([expect.stringMatching(`the manifest of part ${index.oldest.id} .* is damaged`)]);
  await rebuildOf(company);
  clock.ms += RETIRED_MS + 1;
  await company.change(ids[0] ?? 0, 70);
  await flushAll(company);
  expect(await db.direct.get(damaged)).toBeUndefined();
  expect(await faults()).toEqual([]);
  await company.expectListsExact();
});

test("discarding a part deletes all its rows", async () => {
  const companyId = 9_999;
  const row = indexRow(prospectRow({ companyId, id: 1, name: "Ann" }));
  const built = { rows: [{ row, notes: [] }], prospects: [], notes: [], looseNotes: [note(11, 1)] };
  const part = await storePart(db.direct, companyId, built);
  await db.direct.batchPut([partManifestItem(companyId, part, 0, [])]);
  expect(await db.keysOf(`C#${companyId}#`)).toHaveLength(5);
  await discardPart(db.direct, companyId, part);
  expect(await db.keysOf(`C#${companyId}#`)).toEqual([]);
});

test("a check names a row that is lost, a row with other content, and a note that does not exist", async () => {
  const { company, ids } = await stagedCompany();
  const [, , , , other = 0, lost = 0, changed = 0] = ids;
  const stray = { prospectId: other, noteId: 77, version: 1, text: "DOG" };
  await rewriteRows(await indexInHand(db.direct, company.id), (rows) =>
    rows.flatMap((one) => {
      if (one.row.id === lost) return [];
      return [one.row.id === changed ? { ...one, row: { ...one.row, text: "SOMEBODY" } } : one];
    }),
  );
  await rewriteOverrides(await indexInHand(db.direct, company.id), (stored) => ({
    ...stored,
    looseNotes: [...stored.looseNotes, stray],
  }));
  const { faults } = await verify(company);
  expect(faults.toSorted()).toEqual([
    `note 77 of prospect ${other} has no row but is in the index`,
    `prospect ${lost} is missing from the index`,
    `prospect ${changed} has different content in the index and in its row`,
  ]);
});
