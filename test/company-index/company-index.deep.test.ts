/**
 * Tests of the company's search index on a real table. Each request must find exactly the records that were written. While the requests are
 * sent, the index is also flushed and merged. Some of these flushes and merges are killed at an arbitrary call, and some are repeated.
 */
import type { DynamoDBRecord } from "aws-lambda";
import { describe, expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { readManifest } from "#shared/company-index/manifest.ts";
import { openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import { FLUSH_ENTRIES, flush } from "#shared/company-index/write/flush.ts";
import { flushStream } from "#shared/company-index/write/flush-stream.ts";
import { RETIRED_MS } from "#shared/company-index/write/garbage-collection.ts";
import type { Table } from "#shared/db/table.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { type Fault, pass, serverError, throttle } from "../harness/faulty-dynamodb.ts";
import { deaths, killedAt, killPoints } from "../harness/kills.ts";
import { findIn } from "./indexed-company.ts";
import { Records } from "./records.ts";
import { savepoint } from "./savepoint.ts";

const db = faultyDynamoDb();

let companies = 0;
const newRecords = (): Records => new Records(db, 1_000 + companies++);

const clock = { ms: 1_760_000_000_000, now: () => clock.ms };
const everything = { least: 1, settleMs: 0 };
const flushAll = (table: Table, companyId: number) => flush({ table, clock }, companyId, everything);

async function change(records: Records, seed: number): Promise<void> {
  for (let i = 0; i < 8; i++) await records.write(1 + ((seed * 5 + i * 3) % (25 + seed)), seed * 100 + i);
  const text = seed % 5 === 0 ? null : seed % 2 === 0 ? "DOG" : "CAT";
  await records.note(500 + (seed % 9), 1 + ((seed * 5) % 25), text);
  if (seed % 3 === 0) await records.remove(1 + ((seed * 7) % 25));
}

describe("reads", () => {
  test("equal the records after each of many flushes and merges, of which two run at the same time", async () => {
    const records = newRecords();
    const warm = openCompanyIndex(db.direct);
    for (let seed = 0; seed < 10; seed++) {
      await change(records, seed);
      const flushes = [flushAll(db.direct, records.companyId), flushAll(db.direct, records.companyId)];
      await Promise.all([...flushes, records.expectFound(warm), records.expectFound()]);
      await records.expectFound(warm);
      clock.ms += RETIRED_MS / 3;
    }
    await flushAll(db.direct, records.companyId);
    await records.expectFound(warm);
    await records.expectFound();
    await records.expectClean();
  });

  test("that start before a flush and end after it find everything", async () => {
    const records = newRecords();
    await change(records, 1);
    await flushAll(db.direct, records.companyId);
    for (let seed = 2; seed < 8; seed++) {
      await change(records, seed);
      const index = openCompanyIndex(db.table);
      const late: Fault = { kind: "late", meanwhile: () => flushAll(db.direct, records.companyId) };
      // The fault holds back one answer of the table until a whole flush with its merges has ended. This answer therefore shows the state
      // before the flush, and all later answers show the state after the flush.
      db.plan((_, number) => (number === 1 + (seed % 4) ? late : pass));
      await records.expectFound(index);
    }
  });

  test("find everything if flushes run between the pages of the Query", async () => {
    const records = newRecords();
    await change(records, 1);
    await flushAll(db.direct, records.companyId);
    await change(records, 2);
    const restore = await savepoint(db, records.companyId);
    for (let page = 1; page < 10; page++) {
      await restore();
      const inPages = (body: Record<string, unknown>) => ({ ...body, Limit: 2 });
      let queries = 0;
      db.plan((operation) => {
        if (operation !== "Query") return pass;
        if (++queries !== page) return { kind: "ask", change: inPages };
        return { kind: "late", change: inPages, meanwhile: () => flushAll(db.direct, records.companyId) };
      });
      await records.expectFound(openCompanyIndex(db.table));
    }
  });
});

describe("a flush", () => {
  test.each(deaths)(
    "killed %s any call takes effect leaves reads exact, and the next flush finishes",
    { tags: "sized" },
    async (when, death) => {
      for (const at of killPoints(when === "before" ? 0 : 1)) {
        const records = newRecords();
        for (let seed = 0; seed < 3; seed++) {
          await change(records, seed);
          if (seed < 2) await flushAll(db.direct, records.companyId);
        }
        db.plan(killedAt(at, death));
        const outcome = await flushAll(db.table, records.companyId).catch((error: unknown) => error);
        const calls = db.calls.length;
        db.plan(() => pass);
        await records.expectFound();
        await change(records, 9);
        await flushAll(db.direct, records.companyId);
        await records.expectFound();
        await records.expectClean({ orphans: true });
        if (calls < at) {
          expect(outcome).toMatchObject({ entries: expect.any(Number) });
          break;
        }
      }
    },
  );

  test("killed while it removes its entries brings no deleted record back", async () => {
    const records = newRecords();
    await records.write(3, 3);
    await flushAll(db.direct, records.companyId);
    for (let version = 1; version <= 9; version++) await records.write(1, version);
    await records.remove(1);
    await records.write(2, 2);
    // The process deletes two entries and is then killed. Entries are deleted in the text order of their keys, so version 10 (the
    // deletion of the prospect) comes before version 2.
    let isGone = false;
    db.plan((_, __, body) => {
      if (isGone) return serverError;
      isGone = JSON.stringify(body).includes("DeleteRequest");
      return isGone ? { kind: "part", share: 0.2 } : pass;
    });
    await expect(flushAll(db.table, records.companyId)).rejects.toThrow();
    expect((await readUnflushed(db.direct, records.companyId)).keys).toHaveLength(9);
    await records.expectFound();
    db.plan(() => pass);
    await flushAll(db.direct, records.companyId);
    await records.expectFound();
    await records.expectClean({ orphans: true });
  });

  test("keeps its rows if its update of the head row gets no reply and the next flush updates that row before the retry", async () => {
    const records = newRecords();
    await change(records, 1);
    await flushAll(db.direct, records.companyId);
    await change(records, 2);
    let moves = 0;
    const next = async (): Promise<void> => {
      await change(records, 4);
      await flushAll(db.direct, records.companyId);
    };
    db.plan((operation) => {
      if (operation !== "UpdateItem" || ++moves > 2) return pass;
      return moves === 1 ? { kind: "lose reply" } : { kind: "early", meanwhile: next };
    });
    await flushAll(db.table, records.companyId);
    expect(moves).toBeGreaterThan(1);
    await records.expectFound();
    await records.expectClean();
  });

  test("that missed an entry brings no deleted record back", async () => {
    const records = newRecords();
    await records.write(9, 9);
    await flushAll(db.direct, records.companyId);
    await records.write(1, 1);
    await records.write(2, 2);
    await records.remove(2);
    // The flush must miss an entry, as if another process wrote the entry after the flush's Query had passed the entry's key. The plan
    // therefore makes the Query begin behind the entry of version 1 of prospect 2.
    let isFirst = true;
    db.plan((operation) => {
      if (operation !== "Query" || !isFirst) return pass;
      isFirst = false;
      const key = { pk: { S: `C#${records.companyId}#X` }, sk: { S: "D#2#1" } };
      return { kind: "ask", change: (body) => ({ ...body, ExclusiveStartKey: key }) };
    });
    await flushAll(db.table, records.companyId);
    db.plan(() => pass);
    await records.expectFound();
    await records.write(3, 3);
    await flushAll(db.direct, records.companyId);
    await records.expectFound();
    await records.expectClean();
  });

  test("survives throttling and partial batches", async () => {
    const records = newRecords();
    for (let seed = 0; seed < 3; seed++) {
      await change(records, seed);
      db.plan((operation, number) => {
        if (number % 5 === 0) return throttle;
        return operation.startsWith("Batch") && number % 5 === 1 ? { kind: "part", share: 0.4 } : pass;
      });
      await flushAll(db.table, records.companyId);
    }
    db.plan(() => pass);
    await records.expectFound();
    await records.expectClean();
  });

  test("does nothing for few entries", async () => {
    const records = newRecords();
    for (let id = 1; id <= 5; id++) await records.write(id, id);
    const { left, ...done } = await flush({ table: db.direct, clock }, records.companyId);
    expect(done).toMatchObject({ entries: 0, merges: 0 });
    expect(left).toBe(5);
  });
});

describe("the stream of unflushed entries", () => {
  const recordOf = (companyId: number, number: number): DynamoDBRecord => ({
    dynamodb: { Keys: { pk: { S: `C#${companyId}#X` } }, SequenceNumber: String(number) },
  });

  test("may lose and repeat records, because a flush reads the entries from the table and not from the stream", async () => {
    const [busy, quiet] = [newRecords(), newRecords()];
    const handle = flushStream(() => ({ table: db.direct, clock }));
    const batch = (records: Records, count: number) =>
      handle({ Records: Array.from({ length: count }, (_, i) => recordOf(records.companyId, i)) });
    const left = async ({ companyId }: Records) => (await readUnflushed(db.direct, companyId)).keys.length;
    await busy.writeMany(FLUSH_ENTRIES, 2);
    await quiet.writeMany(3, 1);
    // A newly started function does not know how many unflushed entries a company has. When it gets the first stream record of the company,
    // it therefore counts the entries in the table. The company `quiet` has too few entries for a flush.
    expect(await batch(busy, 1)).toEqual({ batchItemFailures: [] });
    expect(await batch(quiet, 1)).toEqual({ batchItemFailures: [] });
    expect([await left(busy), await left(quiet)]).toEqual([0, 3]);
    await busy.writeMany(FLUSH_ENTRIES, 1);
    // Lambda passes the same stream record again and again, and no other record. The function does not notice repetitions: it counts every
    // record as a new entry. After FLUSH_ENTRIES records it therefore flushes.
    for (let i = 1; i < FLUSH_ENTRIES; i++) await batch(busy, 1);
    expect(await left(busy)).toBe(FLUSH_ENTRIES);
    await batch(busy, 1);
    expect(await left(busy)).toBe(0);
    await busy.expectFound();
    await quiet.expectFound();
  });

  test("flushes the other companies if the flush of one company fails, and retries the failed flush", async () => {
    const [broken, sound] = [newRecords(), newRecords()];
    await broken.writeMany(FLUSH_ENTRIES, 1);
    await sound.writeMany(FLUSH_ENTRIES, 1);
    db.plan((_, __, body) => (JSON.stringify(body).includes(`C#${broken.companyId}#X`) ? serverError : pass));
    const handle = flushStream(() => ({ table: db.table, clock }));
    const event = { Records: [recordOf(broken.companyId, 1), recordOf(sound.companyId, 2)] };
    expect(await handle(event)).toEqual({ batchItemFailures: [{ itemIdentifier: "1" }] });
    expect((await readUnflushed(db.direct, sound.companyId)).keys).toEqual([]);
    db.plan(() => pass);
    expect(await handle(event)).toEqual({ batchItemFailures: [] });
    expect((await readUnflushed(db.direct, broken.companyId)).keys).toEqual([]);
    await broken.expectFound();
  });
});

describe("a missing part of the index", () => {
  test("is an error, never a shorter list", async () => {
    const records = newRecords();
    await change(records, 1);
    await flushAll(db.direct, records.companyId);
    const { head } = await readUnflushed(db.direct, records.companyId);
    const manifest = await readManifest(db.direct, records.companyId, head.manifest);
    const [segment] = manifest.parts[0]?.segments ?? [];
    await db.direct.batchRemove([{ pk: `C#${records.companyId}#XS#${segment?.id}`, sk: "main#0" }]);
    await expect(findIn(openCompanyIndex(db.direct), records.companyId, { words: [] })).rejects.toThrow(
      "lacks an item of main",
    );
  });
});
