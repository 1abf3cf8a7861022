/**
 * A company for tests. Its prospects and notes are written as the service writes them, so a test can compare what the company index finds
 * with the rows in the table. Each write needs the version number of the record's previous write, so it must wait for that write.
 */
import { expect } from "vitest";
import type { Criteria } from "#shared/company-index/criteria.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { readManifest, readPartManifests } from "#shared/company-index/manifest.ts";
import { piecesOf } from "#shared/company-index/pieces.ts";
import { type CompanyIndex, openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { type RebuildOptions, rebuild } from "#shared/company-index/repair/rebuild.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { pageOf } from "#shared/company-index/search/page.ts";
import { noteDelta, prospectDelta } from "#shared/company-index/write/entries.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { retiredIn } from "#shared/company-index/write/garbage-collection.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { type Ids, leaseIds } from "#shared/db/ids.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import { insertNote, insertProspect, removeNote, replaceNote, replaceProspect } from "#shared/prospects/rows.ts";
import { StoredNote, type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { type CompanyProspects, readAllProspects } from "../harness/index-oracle.ts";
import { prospectRow } from "../harness/prospect-row.ts";

const now = "2026-05-29T18:00:00.000Z";
const WORDS = ["DOG", "CAT", "BELL"];

export interface Staged {
  /** The ids of all prospects in the order of their creation. The fourth prospect is deleted. */
  readonly ids: readonly number[];
  readonly noteOfA: number;
}

export class IndexedCompany {
  readonly id: number;
  readonly table: Table;
  readonly #ids: Ids;

  constructor(id: number, table: Table) {
    this.id = id;
    this.table = table;
    this.#ids = leaseIds(table);
  }

  async create(seed: number): Promise<number> {
    const id = await this.#ids.nextProspect(this.id);
    await this.table.transact(insertProspect(prospectOf(this.id, id, seed)));
    return id;
  }

  async createMany(count: number): Promise<void> {
    const ids = await this.#ids.takeProspects(this.id, count);
    const writes = ids.flatMap((id, seed) => insertProspect(prospectOf(this.id, id, seed)));
    await this.table.batchPut(writes.flatMap((write) => ("put" in write ? [write.put] : [])));
  }

  async change(id: number, seed: number): Promise<void> {
    const current = await this.prospect(id);
    const { name, lat, lng, statusId } = prospectOf(this.id, id, seed);
    const next = { ...current, name, lat, lng, statusId, version: current.version + 1 };
    await this.table.transact(replaceProspect(current, next));
  }

  async remove(id: number): Promise<void> {
    const current = await this.prospect(id);
    await this.table.transact(replaceProspect(current, { ...current, version: current.version + 1, deletedAt: now }));
  }

  async addNote(prospectId: number, seed: number): Promise<number> {
    const id = await this.#ids.next();
    const dated = { createdAt: now, updatedAt: now, createdBy: null };
    const note = { id, companyId: this.id, prospectId, body: bodyOf(seed), ...dated, version: 1 };
    await this.table.transact(insertNote({ type: "note", ...note }));
    return id;
  }

  async changeNote(prospectId: number, id: number, seed: number): Promise<void> {
    const current = await this.note(prospectId, id);
    await this.table.transact(replaceNote(current, { ...current, body: bodyOf(seed), version: current.version + 1 }));
  }

  async removeNote(prospectId: number, id: number): Promise<void> {
    const [note, prospect] = await Promise.all([this.note(prospectId, id), this.prospect(prospectId)]);
    await this.table.transact(removeNote(note, prospect, Date.now()));
  }

  /** Makes two parts with changes, deletions and notes, two unflushed changes, and outdated entries as a killed flush leaves them. */
  async stage(flush: (company: IndexedCompany) => Promise<unknown>): Promise<Staged> {
    const ids: number[] = [];
    for (let seed = 1; seed <= 9; seed++) ids.push(await this.create(seed));
    const [a = 0, b = 0, c = 0, d = 0] = ids;
    const noteOfA = await this.addNote(a, 1);
    const noteOfB = await this.addNote(b, 2);
    await flush(this);
    const outdated = [
      ...(
        await Promise.all([c, d].map(async (id) => prospectDelta(this.id, indexRow(await this.prospect(id)), null)))
      ).flat(),
      ...noteDelta(this.id, indexNote(await this.note(b, noteOfB))),
    ];
    await this.change(c, 30);
    await this.removeNote(b, noteOfB);
    await this.remove(d);
    await flush(this);
    await this.table.transact(outdated);
    await this.change(a, 31);
    await this.changeNote(a, noteOfA, 5);
    return { ids, noteOfA };
  }

  async prospect(id: number): Promise<StoredProspect> {
    return storedProspect(await this.table.get(keys.prospect(this.id, id)));
  }

  async note(prospectId: number, id: number): Promise<StoredNote> {
    return StoredNote.parse(await this.table.get(attachedKeys.note(this.id, prospectId, now, id)));
  }

  /** Expects that each of `lists` finds exactly the prospects whose rows match, newest first. By default, the index has an empty cache. */
  async expectListsExact(table: Table = this.table, index: CompanyIndex = openCompanyIndex(table)): Promise<void> {
    const found = [];
    for (const { criteria, isIn } of lists) {
      const list = JSON.stringify(criteria);
      const matches = await findIn(index, this.id, criteria);
      const places = pageOf(matches, 0, 100_000);
      const versions = new Map(places.map(({ id, version }) => [id, version]));
      expect(places.length, `prospects in the list ${list}`).toBe(matches.total);
      // All prospects have the same time of creation, so the highest id is first. The expected ids contain an id once, even if the
      // list has it twice.
      expect(places.map(({ id }) => id)).toEqual([...versions.keys()].toSorted((a, b) => b - a));
      found.push({ list, isIn, versions });
    }
    const contents = contentsOf(await readAllProspects(this.table, this.id));
    for (const id of new Set([...contents.keys(), ...found.flatMap(({ versions }) => [...versions.keys()])])) {
      const content = contents.get(id);
      for (const { list, isIn, versions } of found) {
        const version = content !== undefined && isIn(content) ? content.row.version : undefined;
        expect(versions.get(id), `version of ${id} in the list ${list}`).toBe(version);
      }
    }
  }
}

interface Content {
  readonly row: IndexRow;
  /** The searchable text of the prospect and of its notes. */
  readonly text: string;
}

const lists: readonly { readonly criteria: Criteria; readonly isIn: (content: Content) => boolean }[] = [
  { criteria: { words: [] }, isIn: () => true },
  { criteria: { words: [], statusIds: new Set([1]) }, isIn: ({ row }) => row.statusId === 1 },
  {
    criteria: { words: [], box: [-105, 39, -104.5, 39.5] },
    isIn: ({ row: { lat, lng } }) => lat !== null && lng !== null && lat <= 39.5 && lng <= -104.5,
  },
  ...WORDS.map((word) => ({
    criteria: { words: [{ text: word, digits: [] }] },
    isIn: ({ text }: Content) => text.includes(word),
  })),
];

/** Returns functions that create, flush, rebuild and check the companies of one test file. They have one clock, which the tests set. */
export function indexedCompanies(db: FaultyDynamoDb) {
  let companies = 1_000;
  const clock = { ms: 1_760_000_000_000, now: () => clock.ms };
  const newCompany = () => new IndexedCompany(companies++, db.direct);
  const flushAll = ({ id }: IndexedCompany, table: Table = db.direct) =>
    flush({ table, clock }, id, { least: 1, settleMs: 0 });
  return {
    clock,
    newCompany,
    flushAll,
    stagedCompany: async () => {
      const company = newCompany();
      return { company, ...(await company.stage(flushAll)) };
    },
    rebuildOf: ({ id }: IndexedCompany, table: Table = db.direct, options: RebuildOptions = {}) =>
      rebuild({ table, clock }, indexRecords(table), id, { settleMs: 0, ...options }),
    verify: ({ id }: IndexedCompany, pauseMs = 1) => verifyIndex(db.direct, indexRecords(db.direct), id, { pauseMs }),
  };
}

/** Searches a company's index. `criteria` contains ids instead of names, so the names of statuses, users and tags are not loaded. */
export async function findIn(index: CompanyIndex, companyId: number, criteria: Criteria): Promise<Matches> {
  const names = { version: Number.POSITIVE_INFINITY };
  const source = { recent: async () => names, fresh: async () => names };
  return (await index.find(companyId, source, () => criteria)).matches;
}

/** Expects that every part manifest belongs to a current or recently replaced part, and that these manifests list all stored pieces. */
export async function expectNoOrphans({ direct, keysOf }: FaultyDynamoDb, companyId: number): Promise<void> {
  const { head } = await readUnflushed(direct, companyId);
  const partManifests = await readPartManifests(direct, companyId, "strong");
  const known = new Set([...head.manifest, ...retiredIn(head.manifest, partManifests).keys()]);
  expect(new Set(partManifests.keys())).toEqual(known);
  const pieces = piecesOf(await readManifest(direct, companyId, [...known], { partManifests }));
  const expected = new Set(pieces.filter(({ count }) => count > 0).map(({ owner, name }) => `${owner} ${name}#0`));
  const found = (await keysOf(`C#${companyId}#XS#`)).map(({ pk, sk }) => `${pk.split("#").at(-1)} ${sk}`);
  expect(new Set(found)).toEqual(expected);
}

/** Returns the content of each prospect, from its row and from the rows of its notes. */
function contentsOf({ prospects, notes }: CompanyProspects): Map<number, Content> {
  const notesOf = Map.groupBy(notes, ({ prospectId }) => prospectId);
  return new Map(
    prospects.map((prospect) => {
      const row = indexRow(prospect);
      const own = (notesOf.get(prospect.id) ?? []).map(indexNote);
      return [prospect.id, { row, text: [row.text, ...own.map((note) => note.text)].join("\n") }];
    }),
  );
}

const bodyOf = (seed: number): string => `${WORDS[seed % WORDS.length]} ${seed}`;

const prospectOf = (companyId: number, id: number, seed: number): StoredProspect =>
  prospectRow({
    companyId,
    id,
    name: seed % 5 === 0 ? `Dog ${seed}` : `Name ${seed}`,
    phoneNumber: `(303) 555-${seed}`,
    lat: seed % 7 === 0 ? null : 39 + (seed % 50) / 50,
    lng: seed % 7 === 0 ? null : -105 + (seed % 40) / 40,
    statusId: seed % 3 === 0 ? null : seed % 3,
    assignedToUserId: seed % 4 === 0 ? null : 7,
    tagIds: seed % 6 === 0 ? [11, 12] : [],
  });
