/** Tests that lists stay exact while the company's search index is rebuilt and other processes write, flush or are killed. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { HEAD_TYPE, readManifest } from "#shared/company-index/manifest.ts";
import { COMPACTION_LOCK_MS, RebuildRefused, rebuild } from "#shared/company-index/repair/rebuild.ts";
import { MERGE_RATIO } from "#shared/company-index/write/flush.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { type Fault, pass, serverError } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { killedAt, killPoints, killPointsOf } from "../harness/kills.ts";
import { expectNoOrphans, type IndexedCompany, indexedCompanies, type Staged } from "./indexed-company.ts";
import { savepoint } from "./savepoint.ts";

const db = faultyDynamoDb();
const { clock, newCompany, stagedCompany, flushAll, rebuildOf } = indexedCompanies(db);

/** Expects that the lists and the search index agree with the rows, both now and after the next flush with its merges. */
async function expectExact(company: IndexedCompany): Promise<void> {
  await company.expectListsExact();
  await flushAll(company);
  expect(await checkIndex(db.direct, company.id)).toEqual([]);
  await company.expectListsExact();
}

describe("a rebuild", () => {
  test("replaces all parts and the unflushed entries", async () => {
    const { company } = await stagedCompany();
    expect(await rebuildOf(company)).toMatchObject({ prospects: 8, notes: 1, segments: 1, staying: 0 });
    const { head, keys } = await readUnflushed(db.direct, company.id);
    expect({ left: keys, rest: head.lockedUntil, by: head.rebuildId }).toEqual({ left: [], rest: 0, by: null });
    await expectExact(company);
  });

  test("creates the index of a company without one, with or without prospects", async () => {
    const company = newCompany();
    expect(await rebuildOf(company)).toMatchObject({ prospects: 0, segments: 0, replaced: 0 });
    await expectExact(company);
    await company.stage(flushAll);
    await db.direct.batchRemove([...(await db.keysOf(`C#${company.id}#X`))]);
    expect(await rebuildOf(company)).toMatchObject({ prospects: 8, notes: 1, replaced: 0 });
    await expectExact(company);
  });

  const meanwhile: Record<string, (company: IndexedCompany, staged: Staged) => Promise<unknown>> = {
    "prospects and notes are made, changed twice and flushed in between": async (company, { ids, noteOfA }) => {
      const made = await company.create(41);
      const note = await company.addNote(made, 3);
      await company.change(ids[4] ?? 0, 42);
      await flushAll(company);
      await company.changeNote(ids[0] ?? 0, noteOfA, 7);
      await company.changeNote(made, note, 8);
      await company.change(ids[4] ?? 0, 43);
    },
    "prospects and notes are deleted, some of it flushed": async (company, { ids, noteOfA }) => {
      const note = await company.addNote(ids[6] ?? 0, 4);
      await company.changeNote(ids[0] ?? 0, noteOfA, 6);
      await flushAll(company);
      await company.removeNote(ids[6] ?? 0, note);
      await company.remove(ids[7] ?? 0);
      await flushAll(company);
      await company.removeNote(ids[0] ?? 0, noteOfA);
      await company.remove(ids[5] ?? 0);
      await company.remove(ids[0] ?? 0);
    },
  };
  const acts = Object.entries(meanwhile).map(([what, act], turn) => [what, turn, act] as const);
  test.each(acts)("is exact if, at any of its calls, %s", { tags: "sized" }, async (_, turn, act) => {
    const { company, ...staged } = await stagedCompany();
    const restore = await savepoint(db, company.id);
    for (const at of killPoints(turn)) {
      await restore();
      const late: Fault = { kind: "late", meanwhile: () => act(company, staged) };
      db.plan((__, number) => (number === at ? late : pass));
      await rebuildOf(company, db.table);
      const calls = db.calls.length;
      db.plan(() => pass);
      await expectExact(company);
      if (calls < at) break;
    }
  });

  const faults: [string, Fault, RegExp][] = [
    ["before any call takes effect", serverError, /./],
    // Only writes lose their reply in this case. For a read, a lost reply is the same as a kill before the next call, because a read
    // changes nothing.
    ["after any write took effect", { kind: "lose reply" }, /Write|Update/],
  ];
  test.each(faults)(
    "killed %s leaves lists exact, and a later rebuild succeeds",
    { tags: "sized" },
    async (_, fault, operations) => {
      const { company, ids } = await stagedCompany();
      const restore = await savepoint(db, company.id);
      db.plan(() => pass);
      await rebuildOf(company, db.table);
      const candidates = [...db.calls.entries()].filter(([, operation]) => operations.test(operation)).map(([i]) => i);
      for (const killPoint of killPointsOf(candidates.length, 0)) {
        const i = candidates[killPoint - 1] ?? 0;
        await restore();
        db.plan(killedAt(i + 1, fault));
        await rebuildOf(company, db.table).catch(() => undefined);
        await company.expectListsExact();
        await company.change(ids[1] ?? 0, 50);
        await flushAll(company);
        await company.expectListsExact();
        clock.ms += COMPACTION_LOCK_MS + 1;
        expect(await rebuildOf(company)).toMatchObject({ prospects: 8, notes: 1 });
        await expectExact(company);
      }
    },
  );

  test("removes nothing that the head row may refer to, if it gets no answer to its write of the head row", async () => {
    const { company } = await stagedCompany();
    let moves = 0;
    db.plan((operation) => {
      // The only transaction of a rebuild stores the new head row of the index. The SDK sends it three times, and no reply arrives.
      moves += operation === "TransactWriteItems" ? 1 : 0;
      return operation === "TransactWriteItems" && moves <= 3 ? { kind: "lose reply" } : pass;
    });
    await expect(rebuildOf(company, db.table)).rejects.toThrow();
    await expectExact(company);
  });

  test("is exact for a slow reader that reads the unflushed entries before the rebuild and the head row after it", async () => {
    const { company } = await stagedCompany();
    let reader: Promise<void> | undefined;
    const { promise: isInPlace, resolve: goOn } = Promise.withResolvers<void>();
    const records = {
      ...indexRecords(db.direct),
      readAll: async function* (companyId: number) {
        reader = company.expectListsExact(slowReader(db.direct, isInPlace));
        await sleep(50);
        await flushAll(company);
        yield* indexRecords(db.direct).readAll(companyId);
      },
    };
    await rebuild({ table: db.direct, clock }, records, company.id, { settleMs: 0 });
    goOn();
    await reader;
    await expectExact(company);
  });

  test("keeps an unflushed entry if the rebuild has read only an older version of its row", async () => {
    const { company, ids } = await stagedCompany();
    const records = {
      ...indexRecords(db.direct),
      readAll: async function* (companyId: number) {
        for await (const { prospects, notes } of indexRecords(db.direct).readAll(companyId)) {
          yield { prospects: prospects.map((one) => (one.id === ids[0] ? { ...one, version: 1 } : one)), notes };
        }
      },
    };
    await rebuild({ table: db.direct, clock }, records, company.id, { settleMs: 0 });
    expect((await readUnflushed(db.direct, company.id)).entries).toMatchObject([{ id: ids[0], version: 2 }]);
    await expectExact(company);
  });
});

describe("of two rebuilds", () => {
  test("the second is refused while the first holds the lock", async () => {
    const { company } = await stagedCompany();
    const second = async (): Promise<void> => {
      await expect(rebuildOf(company)).rejects.toThrow("another rebuild is running or was killed");
    };
    db.plan((_, number) => (number === 6 ? { kind: "late", meanwhile: second } : pass));
    expect(await rebuildOf(company, db.table)).toMatchObject({ prospects: 8 });
    await expectExact(company);
  });

  test("the rebuild that lost its lock finds its parts replaced, changes nothing and leaves nothing behind", async () => {
    const { company } = await stagedCompany();
    const restore = await savepoint(db, company.id);
    for (const at of [3, 7, 11]) {
      await restore();
      const other = async (): Promise<void> => {
        clock.ms += COMPACTION_LOCK_MS + 1;
        await rebuildOf(company);
      };
      db.plan((_, number) => (number === at ? { kind: "late", meanwhile: other } : pass));
      const outcome = await rebuildOf(company, db.table).catch((error: unknown) => error);
      db.plan(() => pass);
      expect(outcome).toBeInstanceOf(RebuildRefused);
      expect(String(outcome)).toContain("another rebuild or a merge has already replaced the old parts");
      await expectNoOrphans(db, company.id);
      await expectExact(company);
    }
  });
});

describe("a renewal of the lock during a rebuild", () => {
  /** Rebuilds the index. After table call 5, runs `meanwhile`, and then the timer that renews the lock. The renewing write gets `fault`. */
  async function renewing(company: IndexedCompany, meanwhile: () => Promise<unknown>, fault: Fault) {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const renewed = Promise.withResolvers<void>();
    let isDue = false;
    db.plan((operation, number) => {
      if (number === 5) return { kind: "late", meanwhile: untilRenewed };
      if (!isDue || operation !== "UpdateItem") return pass;
      renewed.resolve();
      return fault;
    });
    async function untilRenewed(): Promise<void> {
      await meanwhile();
      isDue = true;
      vi.advanceTimersByTime(COMPACTION_LOCK_MS / 4);
      await renewed.promise;
      isDue = false;
    }
    return rebuildOf(company, db.table).catch((error: unknown) => error);
  }

  test("that finds another rebuild's lock ends the rebuild, which leaves nothing behind", async () => {
    const { company } = await stagedCompany();
    const pieces = async () => (await db.keysOf(`C#${company.id}#XS#`)).map(({ pk, sk }) => `${pk} ${sk}`).toSorted();
    const before = await pieces();
    const key = keys.indexHead(company.id);
    const other = () => db.direct.write({ update: key, change: { set: { rebuildId: "other" } } });
    const outcome = await renewing(company, other, pass);
    expect(outcome).toBeInstanceOf(RebuildRefused);
    expect(String(outcome)).toContain("another rebuild has taken the lock");
    expect(await pieces()).toEqual(before);
    expect(await db.direct.get(key)).toMatchObject({ rebuildId: "other" });
    await company.expectListsExact();
  });

  test("that gets no answer does not end the rebuild, because the lock is still valid", async () => {
    const { company } = await stagedCompany();
    const refused: Fault = { kind: "error", code: "ValidationException", status: 400 };
    expect(await renewing(company, async () => undefined, refused)).toMatchObject({ prospects: 8 });
    await expectExact(company);
  });
});

test("merges stop during a rebuild, and resume a minute after it was killed", async () => {
  const company = newCompany();
  const parts = async (): Promise<number> => {
    const { head } = await readUnflushed(db.direct, company.id);
    return (await readManifest(db.direct, company.id, head.manifest)).parts.length;
  };
  const { ids } = await company.stage(flushAll);
  await flushAll(company);
  db.plan(killedAt(5));
  await expect(rebuildOf(company, db.table)).rejects.toThrow();
  const before = await parts();
  // The company already has two parts of one row, and each change below adds another such part. A flush merges a part with all newer parts
  // when these together have MERGE_RATIO times the rows of this part. After the loop, the older of the two parts has MERGE_RATIO - 1 newer
  // parts, so the change after the loop causes its merge.
  const added = MERGE_RATIO - 2;
  for (let seed = 60; seed < 60 + added; seed++) {
    await company.change(ids[0] ?? 0, seed);
    await flushAll(company);
    await company.expectListsExact();
  }
  expect(await parts()).toBe(before + added);
  clock.ms += COMPACTION_LOCK_MS + 1;
  await company.change(ids[0] ?? 0, 60 + added);
  await flushAll(company);
  expect(await parts()).toBeLessThan(before + added);
  await expectExact(company);
});

/** Returns a table whose Query of the index reads the unflushed entries at once, but the head row only after `released` has resolved. */
const slowReader = (table: Table, released: Promise<void>): Table => ({
  ...table,
  query: async function* (spec) {
    const items = await Array.fromAsync(table.query(spec));
    if (!spec.pk.endsWith("#X")) return yield* items;
    await released;
    yield* items.filter(({ type }) => type !== HEAD_TYPE);
    for await (const item of table.query(spec)) if (item.type === HEAD_TYPE) yield item;
  },
});
