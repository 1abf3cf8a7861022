/** Writes prospects and notes to a table and remembers them, so that a test can compare the search index with them. */
import { expect } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { type CompanyIndex, openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import type { IndexEntry, IndexRow } from "#shared/company-index/record.ts";
import { pageOf } from "#shared/company-index/search/page.ts";
import { noteDelta, prospectDelta } from "#shared/company-index/write/entries.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { expectNoOrphans, findIn } from "./indexed-company.ts";
import { plainRow } from "./plain-rows.ts";

export class Records {
  readonly companyId: number;
  readonly #db: FaultyDynamoDb;
  readonly #rows = new Map<number, IndexRow>();
  readonly #versions = new Map<number, number>();
  readonly #notes = new Map<number, { prospectId: number; version: number; text: string | null }>();

  constructor(db: FaultyDynamoDb, companyId: number) {
    this.#db = db;
    this.companyId = companyId;
  }

  /** Writes nothing if the prospect is deleted, because a deleted id is never used again. */
  async write(id: number, seed: number): Promise<void> {
    const row = this.#next(id, seed);
    if (row !== undefined) await this.#db.direct.transact(prospectDelta(this.companyId, row, null));
  }

  /** Writes each prospect `times` times. It combines many writes in one call to the table to save time. */
  async writeMany(ids: number, times: number): Promise<void> {
    const rows = Array.from({ length: ids * times }, (_, i) => this.#next(1 + (i % ids), i));
    const writes = rows.flatMap((row) => (row === undefined ? [] : prospectDelta(this.companyId, row, null)));
    await this.#db.direct.batchPut(writes.flatMap((write) => ("put" in write ? [write.put] : [])));
  }

  #next(id: number, seed: number): IndexRow | undefined {
    if (this.#versions.has(id) && !this.#rows.has(id)) return undefined;
    const version = (this.#versions.get(id) ?? 0) + 1;
    const row = plainRow({
      id,
      version,
      createdAt: this.#rows.get(id)?.createdAt ?? 1_760_000_000_000 + seed,
      updatedAt: 1_770_000_000_000 + seed,
      statusId: [null, 1, 2][seed % 3] ?? null,
      assignedToUserId: seed % 4 === 0 ? null : 7,
      city: "denver",
      lat: 39 + (seed % 50) / 50,
      lng: -105 + (seed % 40) / 40,
      text: `NAME ${seed}\nDENVER`,
      phoneDigits: `303${seed}\n`,
    });
    this.#rows.set(id, row);
    this.#versions.set(id, version);
    return row;
  }

  async remove(id: number): Promise<void> {
    if (!this.#rows.delete(id)) return;
    const version = (this.#versions.get(id) ?? 0) + 1;
    const entry: IndexEntry = { id, version, deleted: true };
    this.#versions.set(id, version);
    await this.#db.direct.transact(prospectDelta(this.companyId, entry, null));
  }

  /**
   * Writes a new version of a note. A note that does not exist yet is created on the prospect `firstOn`. An existing note stays with its
   * prospect.
   */
  async note(noteId: number, firstOn: number, text: string | null): Promise<void> {
    const known = this.#notes.get(noteId);
    const prospectId = known?.prospectId ?? firstOn;
    if (!this.#rows.has(prospectId)) return;
    const version = (known?.version ?? 0) + 1;
    const note = { prospectId, version, text };
    this.#notes.set(noteId, note);
    await this.#db.direct.transact(noteDelta(this.companyId, { noteId, ...note }));
  }

  #has({ id, text }: IndexRow, word: string): boolean {
    const notes = [...this.#notes.values()].filter((note) => note.prospectId === id);
    return [text, ...notes.map((note) => note.text ?? "")].some((one) => one.includes(word));
  }

  /** Expects that the index returns the same total, ids and order as a plain filter over the remembered records. */
  async expectFound(index: CompanyIndex = openCompanyIndex(this.#db.direct)): Promise<void> {
    const rows = [...this.#rows.values()].sort((a, b) => b.createdAt - a.createdAt || b.id - a.id);
    const asked = [
      { criteria: { words: [] }, passes: () => true },
      { criteria: { words: [], statusIds: new Set([1]) }, passes: ({ statusId }: IndexRow) => statusId === 1 },
      {
        criteria: { words: [], box: [-105, 39, -104.5, 39.5] as const },
        passes: ({ lat, lng }: IndexRow) => (lat ?? 0) <= 39.5 && (lng ?? 0) <= -104.5,
      },
      { criteria: { words: [{ text: "DOG", digits: [] }] }, passes: (row: IndexRow) => this.#has(row, "DOG") },
    ];
    for (const { criteria, passes } of asked) {
      const ids = rows.filter(passes).map(({ id }) => id);
      const matches = await findIn(index, this.companyId, criteria);
      const place = `company ${this.companyId}, ${JSON.stringify(criteria)}`;
      expect(matches.total, place).toBe(ids.length);
      const found = pageOf(matches, 0, ids.length + 1).map(({ id }) => id);
      expect(found, place).toEqual(ids);
    }
  }

  /**
   * Expects that no unflushed entry is left. Without `orphans`, also expects that no killed process has left pieces of the index.
   */
  async expectClean({ orphans = false } = {}): Promise<void> {
    const { companyId } = this;
    const { keys: left } = await readUnflushed(this.#db.direct, companyId);
    expect(left).toEqual([]);
    if (orphans) return;
    await expectNoOrphans(this.#db, companyId);
  }
}
