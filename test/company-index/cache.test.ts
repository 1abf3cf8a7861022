/** Tests that the full cache of company indexes drops searchable texts before whole companies, and that reads stay exact. */
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type CompanyIndex, cacheBytesOf, openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { addRows } from "#shared/company-index/write/publish.ts";
import { readMeasured } from "../bench/cost/measured.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { findIn } from "./indexed-company.ts";
import { plainRow } from "./plain-rows.ts";

const ROWS = 3_000;
const COMPANIES = [31, 32, 33];
const clock = { now: () => 1_760_000_000_000 };
/** The company ids of the index rows that the code has read from the table. A row that comes from the cache is not in this list. */
let asked: string[] = [];
const db = faultyDynamoDb();
beforeAll(async () => {
  for (const companyId of COMPANIES) await addRows({ table: db.direct, clock }, companyId, rowsOf(companyId));
});
beforeEach(() => {
  asked = [];
  db.plan((operation, _, body) => {
    if (operation === "BatchGetItem") {
      for (const [, company] of JSON.stringify(body).matchAll(/C#(\d+)#XS#[^"]*"\},"sk":\{"S":"[^"]*"/g))
        asked.push(String(company));
    }
    return pass;
  });
});

const rowsOf = (companyId: number): RowWithNotes[] =>
  Array.from({ length: ROWS }, (_, i) => {
    const id = companyId * 1_000_000 + i;
    const text = `PERSON ${i} OF ${companyId} AT ${i} A LONG STREET IN DENVER, COLORADO`;
    const place = { city: "DENVER", lat: 39 + i / 10_000, lng: -105 };
    const dated = { createdAt: clock.now() - i, updatedAt: clock.now() };
    const row = plainRow({ id, ...dated, statusId: (i % 8) + 1, ...place, text });
    const note = { prospectId: id, noteId: id + 500_000, version: 1, text: "BEWARE OF THE DOG" };
    return { row, notes: i % 2 === 0 ? [note] : [] };
  });

async function read(index: CompanyIndex, companyId: number, word?: string): Promise<number> {
  return (await findIn(index, companyId, { words: word === undefined ? [] : [{ text: word, digits: [] }] })).total;
}

/** Returns the bytes that the cache holds for one company: first without and then with the searchable texts, which a search loads. */
async function sizes(): Promise<{ columns: number; withTexts: number }> {
  const index = openCompanyIndex(db.direct);
  await read(index, 31);
  const columns = index.cachedBytes;
  let withTexts = 0;
  // The first search loads the texts, and a later search replaces them by smaller word indexes. The function returns the largest size.
  for (let i = 0; i < 3; i++) {
    await read(index, 31, "DOG");
    withTexts = Math.max(withTexts, index.cachedBytes);
  }
  return { columns, withTexts };
}

describe("the cache", () => {
  test("drops the texts of other companies before any columns, so that lists still come from memory", async () => {
    const { columns, withTexts } = await sizes();
    const budget = COMPANIES.length * columns + 1.5 * (withTexts - columns);
    const index = openCompanyIndex(db.table, budget);
    for (const companyId of COMPANIES) expect(await read(index, companyId)).toBe(ROWS);
    for (const companyId of COMPANIES) {
      for (let i = 0; i < 3; i++) expect(await read(index, companyId, "DOG")).toBe(ROWS / 2);
    }
    expect(index.cachedBytes).toBeLessThanOrEqual(budget);
    asked = [];
    for (const companyId of COMPANIES) expect(await read(index, companyId)).toBe(ROWS);
    expect(asked).toEqual([]);
    expect(await read(index, 31, "STREET")).toBe(ROWS);
    expect(new Set(asked)).toEqual(new Set(["31"]));
  });

  test("of size zero keeps the segments that running reads use, so concurrent searches of all companies are exact", async () => {
    // This test uses `db.direct`, whose client has long time-outs, because a busy machine answers so many concurrent reads slowly.
    const index = openCompanyIndex(db.direct, 1);
    const reads = Array.from({ length: 60 }, (_, i) => {
      const companyId = COMPANIES[i % COMPANIES.length] ?? 0;
      return i % 2 === 0 ? read(index, companyId, "DOG") : read(index, companyId);
    });
    expect(await Promise.all(reads)).toEqual(reads.map((_, i) => (i % 2 === 0 ? ROWS / 2 : ROWS)));
  });
});

describe("the cache size", () => {
  test.each([128, 512, 1_024, 2_048, 5_120, 10_240])("with %d MB leaves memory for Node.js and a read", (memoryMb) => {
    const kept = cacheBytesOf(memoryMb) / 2 ** 20;
    expect(kept + Math.min(460, memoryMb * 0.8)).toBeLessThanOrEqual(memoryMb);
  });

  test("holds 200 companies of 100 000 prospects in the memory of the functions of lists, of the map and of searches", () => {
    const { list, pins, search } = readMeasured().loads;
    expect(200 * list.bytes).toBeLessThan(cacheBytesOf(2_048));
    expect(200 * pins.bytes).toBeLessThan(cacheBytesOf(2_048));
    expect(200 * search.bytes).toBeLessThan(cacheBytesOf(5_120));
    expect(200 * list.bytes).toBeGreaterThan(cacheBytesOf(1_024));
  });
});
