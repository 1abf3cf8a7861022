/** Tests that each read of the company index finds exactly the written records, also during flushes and merges, and after their kills. */
import type { DynamoDBRecord } from "aws-lambda";
import { describe, expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { flushStream } from "#shared/company-index/write/flush-stream.ts";
import { RETIRED_MS } from "#shared/company-index/write/garbage-collection.ts";
import * as keys from "#shared/db/keys.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { type Fault, pass, serverError } from "../harness/faulty-dynamodb.ts";
import { deaths, killedAt, killPoints } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import { indexInHand, pieceOf } from "./damage.ts";
import { expectNoOrphans, findIn, type IndexedCompany, indexedCompanies } from "./indexed-company.ts";
import { savepoint } from "./savepoint.ts";

const db = faultyDynamoDb();
const { clock, newCompany, flushAll } = indexedCompanies(db);

interface Scene {
  readonly company: IndexedCompany;
  /** The ids of the prospects that are not deleted. */
  readonly ids: number[];
  /** The note that `change` has added last. */
  note?: { readonly prospectId: number; readonly id: number };
}

const newScene = (): Scene => ({ company: newCompany(), ids: [] });

/** Returns a company with some records, all of which are flushed. */
async function flushedScene(): Promise<Scene> {
  const scene = newScene();
  await change(scene, 1);
  await flushAll(scene.company);
  return scene;
}

/** Creates eight prospects and a note, and changes earlier records. With every third seed, also removes a prospect. */
async function change(scene: Scene, seed: number): Promise<void> {
  const { company, ids, note } = scene;
  for (let i = 0; i < 8; i++) ids.push(await company.create(seed * 100 + i));
  const chosen = (n: number): number => ids[(seed * 5 + n * 3) % ids.length] ?? 0;
  for (let n = 0; n < 4; n++) await company.change(chosen(n), seed * 100 + 50 + n);
  if (note !== undefined && ids.includes(note.prospectId)) {
    if (seed % 2 === 0) await company.removeNote(note.prospectId, note.id);
    else await company.changeNote(note.prospectId, note.id, seed + 1);
  }
  scene.note = { prospectId: chosen(1), id: await company.addNote(chosen(1), seed) };
  const [removed = 0] = seed % 3 === 0 ? ids.splice(seed % ids.length, 1) : [];
  if (removed > 0) await company.remove(removed);
}

const unflushedOf = async ({ id }: IndexedCompany) => (await readUnflushed(db.direct, id)).keys;

/** Expects that no unflushed entry is left, and that each stored piece of the index belongs to a part. */
async function expectClean(company: IndexedCompany): Promise<void> {
  expect(await unflushedOf(company)).toEqual([]);
  await expectNoOrphans(db, company.id);
}

/** Yields a company nine times, each time for one read by `db.table` in pages of two entries. A flush runs after page N of read N. */
async function* flushedBetweenPages(): AsyncGenerator<IndexedCompany> {
  const scene = await flushedScene();
  const { company } = scene;
  await change(scene, 2);
  const restore = await savepoint(db, company.id);
  for (let page = 1; page < 10; page++) {
    await restore();
    const inPages = (body: Record<string, unknown>) => ({ ...body, Limit: 2 });
    let queries = 0;
    db.plan((operation) => {
      if (operation !== "Query") return pass;
      if (++queries !== page) return { kind: "ask", change: inPages };
      return { kind: "late", change: inPages, meanwhile: () => flushAll(company) };
    });
    yield company;
  }
}

describe("reads", () => {
  test("equal the records after each of many flushes and merges, of which two run at the same time", async () => {
    const scene = newScene();
    const { company } = scene;
    const warm = openCompanyIndex(db.direct);
    const expectFound = () => company.expectListsExact(db.direct, warm);
    for (let seed = 0; seed < 10; seed++) {
      await change(scene, seed);
      await Promise.all([flushAll(company), flushAll(company), expectFound(), company.expectListsExact()]);
      await expectFound();
      clock.ms += RETIRED_MS / 3;
    }
    await flushAll(company);
    await expectFound();
    await company.expectListsExact();
    await expectClean(company);
  });

  test("stay exact after many writes without a flush", { tags: "sized" }, async () => {
    const count = sized({ short: 1_000, wide: 10_000 });
    const company = newCompany();
    await company.createMany(count);
    expect(await unflushedOf(company)).toHaveLength(count);
    const warm = openCompanyIndex(db.direct);
    await company.expectListsExact(db.direct, warm);
    await flushAll(company);
    await company.expectListsExact(db.direct, warm);
    await company.expectListsExact();
    expect(await unflushedOf(company)).toEqual([]);
  });

  test("that start before a flush and end after it find everything", async () => {
    const scene = await flushedScene();
    const { company } = scene;
    for (let seed = 2; seed < 8; seed++) {
      await change(scene, seed);
      const late: Fault = { kind: "late", meanwhile: () => flushAll(company) };
      // The fault holds back one answer of the table until a whole flush with its merges has ended. This answer therefore shows the state
      // before the flush, and all later answers show the state after the flush.
      db.plan((_, number) => (number === 1 + (seed % 4) ? late : pass));
      await company.expectListsExact(db.table);
    }
  });

  test("find everything if flushes run between the pages of the Query", async () => {
    for await (const company of flushedBetweenPages()) await company.expectListsExact(db.table);
  });

  test("that meet a flush between the pages of each attempt are refused as busy after five attempts", async () => {
    const company = newCompany();
    await company.create(1);
    const meanwhile = async (): Promise<void> => {
      await company.create(2);
      await flushAll(company);
    };
    let attempts = 0;
    db.plan((_operation, _number, body) => {
      if (!("ExclusiveStartKey" in body)) attempts++;
      return { kind: "late", change: (asked) => ({ ...asked, Limit: 1 }), meanwhile };
    });
    const read = readUnflushed(db.table, company.id);
    await expect(read).rejects.toThrow(`the index of company ${company.id} kept changing`);
    expect(attempts).toBe(5);
  });
});

describe("a flush", () => {
  test.each(deaths)(
    "killed %s any call takes effect leaves reads exact, and the next flush finishes",
    { tags: "sized" },
    async (when, death) => {
      for (const at of killPoints(when === "before" ? 0 : 1)) {
        const scene = newScene();
        const { company } = scene;
        for (let seed = 0; seed < 3; seed++) {
          await change(scene, seed);
          if (seed < 2) await flushAll(company);
        }
        db.plan(killedAt(at, death));
        const outcome = await flushAll(company, db.table).catch((error: unknown) => error);
        const calls = db.calls.length;
        db.plan(() => pass);
        await company.expectListsExact();
        await change(scene, 9);
        await flushAll(company);
        await company.expectListsExact();
        expect(await unflushedOf(company)).toEqual([]);
        if (calls < at) {
          expect(outcome).toMatchObject({ entries: expect.any(Number) });
          break;
        }
      }
    },
  );

  test("killed while it removes its entries brings no deleted record back", async () => {
    const company = newCompany();
    await company.create(3);
    await flushAll(company);
    const id = await company.create(1);
    for (let version = 2; version <= 9; version++) await company.change(id, version);
    await company.remove(id);
    await company.create(2);
    // The process deletes two entries and is then killed. Entries are deleted in the text order of their keys (1, 10, 2), so the entry of
    // version 10 (the deletion of the prospect) is gone, and that of version 2 is left.
    let isGone = false;
    db.plan((_, __, body) => {
      if (isGone) return serverError;
      isGone = JSON.stringify(body).includes("DeleteRequest");
      return isGone ? { kind: "part", share: 0.2 } : pass;
    });
    await expect(flushAll(company, db.table)).rejects.toThrow();
    expect(await unflushedOf(company)).toHaveLength(9);
    await company.expectListsExact();
    db.plan(() => pass);
    await flushAll(company);
    await company.expectListsExact();
    expect(await unflushedOf(company)).toEqual([]);
  });

  test("keeps its rows if its update of the head row gets no reply and the next flush updates that row before the retry", async () => {
    const scene = await flushedScene();
    const { company } = scene;
    await change(scene, 2);
    let moves = 0;
    const next = async (): Promise<void> => {
      await change(scene, 4);
      await flushAll(company);
    };
    db.plan((operation) => {
      if (operation !== "UpdateItem" || ++moves > 2) return pass;
      return moves === 1 ? { kind: "lose reply" } : { kind: "early", meanwhile: next };
    });
    await flushAll(company, db.table);
    expect(moves).toBeGreaterThan(1);
    await company.expectListsExact();
    await expectClean(company);
  });

  test("that missed an entry brings no deleted record back", async () => {
    const company = newCompany();
    await company.create(9);
    await flushAll(company);
    await company.create(1);
    const id = await company.create(2);
    await company.remove(id);
    // The flush must miss an entry, as if another process wrote the entry after the flush's Query had passed the entry's key. The plan
    // therefore makes the Query begin behind the entry of version 1 of the deleted prospect.
    let isFirst = true;
    db.plan((operation) => {
      if (operation !== "Query" || !isFirst) return pass;
      isFirst = false;
      const { pk, sk } = keys.prospectDelta(company.id, id, 1);
      const key = { pk: { S: pk }, sk: { S: sk } };
      return { kind: "ask", change: (body) => ({ ...body, ExclusiveStartKey: key }) };
    });
    await flushAll(company, db.table);
    db.plan(() => pass);
    await company.expectListsExact();
    await company.create(3);
    await flushAll(company);
    await company.expectListsExact();
    await expectClean(company);
  });

  test("stores no outdated record if another flush runs between the pages of its Query", async () => {
    for await (const company of flushedBetweenPages()) {
      await flushAll(company, db.table);
      await company.expectListsExact();
    }
  });
});

describe("the stream of unflushed entries", () => {
  const recordOf = (companyId: number, number: number): DynamoDBRecord => ({
    dynamodb: { Keys: { pk: { S: `C#${companyId}#X` } }, SequenceNumber: String(number) },
  });

  test("may lose and repeat records, because a flush reads the entries from the table and not from the stream", async () => {
    const [busy, quiet] = [newCompany(), newCompany()];
    const handle = flushStream(() => ({ table: db.direct, clock }));
    const batch = ({ id }: IndexedCompany, count: number) =>
      handle({ Records: Array.from({ length: count }, (_, i) => recordOf(id, i)) });
    const left = async (company: IndexedCompany) => (await unflushedOf(company)).length;
    await busy.createMany(2 * FLUSH_ENTRIES);
    await quiet.createMany(3);
    // A newly started function does not know how many unflushed entries a company has. When it gets the first stream record of the company,
    // it therefore counts the entries in the table. The company `quiet` has too few entries for a flush.
    expect(await batch(busy, 1)).toEqual({ batchItemFailures: [] });
    expect(await batch(quiet, 1)).toEqual({ batchItemFailures: [] });
    expect([await left(busy), await left(quiet)]).toEqual([0, 3]);
    await busy.createMany(FLUSH_ENTRIES);
    // Lambda passes the same stream record again and again, and no other record. The function does not notice repetitions: it counts every
    // record as a new entry. After FLUSH_ENTRIES records it therefore flushes.
    for (let i = 1; i < FLUSH_ENTRIES; i++) await batch(busy, 1);
    expect(await left(busy)).toBe(FLUSH_ENTRIES);
    await batch(busy, 1);
    expect(await left(busy)).toBe(0);
    await busy.expectListsExact();
    await quiet.expectListsExact();
  });

  test("flushes the other companies if the flush of one company fails, and retries the failed flush", async () => {
    const [broken, sound] = [newCompany(), newCompany()];
    await broken.createMany(FLUSH_ENTRIES);
    await sound.createMany(FLUSH_ENTRIES);
    db.plan((_, __, body) => (JSON.stringify(body).includes(`C#${broken.id}#X`) ? serverError : pass));
    const handle = flushStream(() => ({ table: db.table, clock }));
    const event = { Records: [recordOf(broken.id, 1), recordOf(sound.id, 2)] };
    expect(await handle(event)).toEqual({ batchItemFailures: [{ itemIdentifier: "1" }] });
    expect(await unflushedOf(sound)).toEqual([]);
    db.plan(() => pass);
    expect(await handle(event)).toEqual({ batchItemFailures: [] });
    expect(await unflushedOf(broken)).toEqual([]);
    await broken.expectListsExact();
  });
});

test("a missing part of the index is an error, never a shorter list", async () => {
  const { id } = (await flushedScene()).company;
  const index = await indexInHand(db.direct, id);
  await db.direct.batchRemove([pieceOf(index, index.segment.id, "main")]);
  await expect(findIn(openCompanyIndex(db.direct), id, { words: [] })).rejects.toThrow("lacks an item of main");
});
