/** Tests which part manifests a flush writes, a killed flush leaves behind, and garbage collection deletes. */
import { describe, expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { readPartManifests } from "#shared/company-index/manifest.ts";
import { openCompanyIndex } from "#shared/company-index/read/company-index.ts";
import { takeCompactionLock } from "#shared/company-index/repair/rebuild.ts";
import { MERGE_RATIO } from "#shared/company-index/write/flush.ts";
import { RETIRED_MS, retiredIn } from "#shared/company-index/write/garbage-collection.ts";
import { addRows } from "#shared/company-index/write/publish.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { deaths, killedAt, killPoints } from "../harness/kills.ts";
import { expectNoOrphans, findIn, type IndexedCompany, indexedCompanies } from "./indexed-company.ts";
import { plainRow } from "./plain-rows.ts";
import { savepoint } from "./savepoint.ts";

const db = faultyDynamoDb();
const { clock, newCompany, flushAll, rebuildOf, verify } = indexedCompanies(db);
const DAY_MS = 24 * 3_600_000;
const LARGE = 20;

/** Creates a company with a part that is larger than the parts of later flushes, and makes `turns` flushes after it. */
async function companyWithLargePart(turns = 0): Promise<{ company: IndexedCompany; ids: number[] }> {
  const company = newCompany();
  const ids: number[] = [];
  for (let seed = 1; seed <= LARGE; seed++) ids.push(await company.create(seed));
  await flushAll(company);
  await smallParts(company, ids, turns);
  return { company, ids };
}

/** Writes and flushes `turns` times. Each flush adds a small part, or merges its entries with other small parts. */
async function smallParts(company: IndexedCompany, ids: readonly number[], turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await writeSome(company, ids, turn);
    await flushAll(company);
  }
}

async function writeSome(company: IndexedCompany, ids: readonly number[], turn: number): Promise<void> {
  const [a = 0, b = 0] = ids.slice(turn % 10);
  await company.change(a, 100 + turn);
  await company.addNote(b, turn);
}

async function headOf({ id }: IndexedCompany) {
  return (await readUnflushed(db.direct, id)).head;
}

const partManifestsOf = ({ id }: IndexedCompany) => readPartManifests(db.direct, id, "strong");

const expectNoGarbage = ({ id }: IndexedCompany) => expectNoOrphans(db, id);

describe("a flush", () => {
  test("writes only the manifest of its own part", async () => {
    const { company, ids } = await companyWithLargePart();
    await writeSome(company, ids, 1);
    const written: string[] = [];
    db.plan((operation, _, body) => {
      const text = JSON.stringify(body);
      if (operation === "BatchWriteItem" && text.includes("PutRequest") && text.includes("#XM"))
        written.push(...(text.match(/PutRequest/g) ?? []));
      return pass;
    });
    await flushAll(company, db.table);
    expect(written).toHaveLength(1);
    expect((await headOf(company)).manifest).toHaveLength(2);
  });

  test("merges its entries directly with the parts that would be merged next", async () => {
    const { company, ids } = await companyWithLargePart(MERGE_RATIO);
    const { manifest: before } = await headOf(company);
    expect(before).toHaveLength(1 + MERGE_RATIO);
    await writeSome(company, ids, MERGE_RATIO);
    expect(await flushAll(company)).toMatchObject({ left: 0, merges: 1 });
    const { manifest } = await headOf(company);
    expect(manifest).toEqual([before[0], expect.any(String)]);
    const stored = new Set((await partManifestsOf(company)).keys());
    expect(stored).toEqual(new Set([...before, ...manifest.slice(1)]));
    expect(await checkIndex(db.direct, company.id)).toEqual([]);
    await company.expectListsExact();
    await expectNoGarbage(company);
  });

  test("merges nothing while a rebuild holds the compaction lock", async () => {
    const { company, ids } = await companyWithLargePart();
    await takeCompactionLock({ table: db.direct, clock }, company.id, await headOf(company), "rebuild");
    await smallParts(company, ids, MERGE_RATIO + 2);
    expect((await headOf(company)).manifest).toHaveLength(1 + MERGE_RATIO + 2);
    await company.expectListsExact();
  });

  test.each(deaths)(
    "that merges and is killed %s any call takes effect leaves lists exact; the next flush finishes, and a day later nothing is left behind",
    { tags: "sized" },
    async (when, death) => {
      const { company, ids } = await companyWithLargePart(MERGE_RATIO);
      await writeSome(company, ids, MERGE_RATIO);
      const begun = clock.ms;
      const restore = await savepoint(db, company.id);
      for (const at of killPoints(when === "before" ? 0 : 2)) {
        await restore();
        clock.ms = begun;
        db.plan(killedAt(at, death));
        const outcome = await flushAll(company, db.table).catch((error: unknown) => error);
        const calls = db.calls.length;
        db.plan(() => pass);
        await company.expectListsExact();
        await flushAll(company);
        expect(await checkIndex(db.direct, company.id)).toEqual([]);
        clock.ms += DAY_MS + 1;
        await smallParts(company, ids, 1);
        await company.expectListsExact();
        const { manifest } = await headOf(company);
        const partManifests = await partManifestsOf(company);
        const known = new Set([...manifest, ...retiredIn(manifest, partManifests).keys()]);
        expect(new Set(partManifests.keys())).toEqual(known);
        if (calls < at) {
          expect(outcome).toMatchObject({ merges: 1 });
          await expectNoGarbage(company);
          break;
        }
      }
    },
  );

  test("succeeds only once if two flushes merge the same parts, and the failed flush leaves nothing behind", async () => {
    const { company, ids } = await companyWithLargePart(MERGE_RATIO);
    await writeSome(company, ids, MERGE_RATIO);
    await Promise.all([flushAll(company), flushAll(company), company.expectListsExact()]);
    await flushAll(company);
    await company.expectListsExact();
    expect(await checkIndex(db.direct, company.id)).toEqual([]);
    await expectNoGarbage(company);
  });

  test("recognises that it has published its part even if the reply is lost and the part is replaced before the retry", async () => {
    const { company, ids } = await companyWithLargePart(MERGE_RATIO - 1);
    await writeSome(company, ids, MERGE_RATIO - 1);
    let moves = 0;
    let replaced: string[] = [];
    const next = async (): Promise<void> => {
      const before = (await headOf(company)).manifest;
      await smallParts(company, ids.slice(10), 1);
      const { manifest } = await headOf(company);
      replaced = before.filter((id) => !manifest.includes(id));
    };
    db.plan((operation) => {
      if (operation !== "TransactWriteItems" || ++moves > 2) return pass;
      return moves === 1 ? { kind: "lose reply" } : { kind: "early", meanwhile: next };
    });
    expect(await flushAll(company, db.table)).toMatchObject({ entries: 2 });
    expect(replaced).toHaveLength(MERGE_RATIO);
    // The replaced parts must still exist, because a reader that started before the merge may use them for up to a minute.
    expect([...(await partManifestsOf(company)).keys()]).toEqual(expect.arrayContaining(replaced));
    await company.expectListsExact();
    await expectNoGarbage(company);
  });

  test("does not make the head grow, however many flushes run within a minute", async () => {
    const { company } = await companyWithLargePart(30);
    const head = await db.direct.get(keys.indexHead(company.id));
    expect(JSON.stringify(head).length).toBeLessThan(400);
  });
});

describe("a replaced part", () => {
  test("stays for a minute, because running reads may use it, and is then removed", async () => {
    const { company, ids } = await companyWithLargePart(MERGE_RATIO + 1);
    const size = MERGE_RATIO + 2;
    expect((await partManifestsOf(company)).size).toBe(size);
    clock.ms += RETIRED_MS;
    await smallParts(company, ids, 1);
    expect((await partManifestsOf(company)).size).toBe(size + 1);
    clock.ms += 1;
    await smallParts(company, ids, 1);
    expect((await partManifestsOf(company)).size).toBe(size + 2 - MERGE_RATIO);
    await expectNoGarbage(company);
  });

  test("is removed even after its successor was replaced, and after a rebuild", async () => {
    const { company, ids } = await companyWithLargePart(14);
    await rebuildOf(company);
    expect((await partManifestsOf(company)).size).toBeGreaterThan(10);
    await expectNoGarbage(company);
    clock.ms += RETIRED_MS + 1;
    await smallParts(company, ids, 1);
    expect(new Set((await partManifestsOf(company)).keys())).toEqual(new Set((await headOf(company)).manifest));
    await expectNoGarbage(company);
    await company.expectListsExact();
  });

  test("is distinguished from a part that an import is about to publish, however long the import takes", async () => {
    const { company, ids } = await companyWithLargePart(1);
    // The import writes its part of the index twelve hours before it makes this part visible. A flush during this time deletes unused
    // parts, but must not delete this part.
    let isFirst = true;
    const other = async (): Promise<void> => {
      clock.ms += DAY_MS / 2;
      await smallParts(company, ids.slice(10), 1);
    };
    db.plan((operation) => {
      if (operation !== "UpdateItem" || !isFirst) return pass;
      isFirst = false;
      return { kind: "early", meanwhile: other };
    });
    const dated = { createdAt: clock.ms, updatedAt: clock.ms };
    const row = plainRow({ id: 9_000_000, ...dated, lat: 40, lng: -105, text: "IMPORTED" });
    await addRows({ table: db.table, clock }, company.id, [{ row, notes: [] }]);
    const { total } = (await listOf(db.direct, company)).result;
    expect(total).toBe(LARGE + 1);
    await expectNoGarbage(company);
  });
});

const listOf = (table: Table, { id }: IndexedCompany, index = openCompanyIndex(table)) =>
  metered(() => findIn(index, id, { words: [] }));

describe("a reader", () => {
  test("without a cache requests the head and all part manifests at the same time, and then the segments", async () => {
    const { company } = await companyWithLargePart(3);
    const { result, usage } = await listOf(db.direct, company);
    expect({ total: result.total, rounds: usage.rounds }).toEqual({ total: LARGE, rounds: 2 });
  });

  test("with a cache requests only unknown part manifests, and no segment twice", async () => {
    const { company, ids } = await companyWithLargePart();
    const index = openCompanyIndex(db.table);
    await listOf(db.table, company, index);
    await smallParts(company, ids, 1);
    const asked: string[] = [];
    db.plan((operation, _, body) => {
      if (operation === "BatchGetItem") asked.push(...(JSON.stringify(body).match(/#X[MS]/g) ?? []));
      return pass;
    });
    expect((await listOf(db.table, company, index)).result.total).toBe(LARGE);
    expect(asked).toEqual(["#XM", "#XS"]);
  });

  test("requests each part manifest that its read of an outdated replica did not return", async () => {
    const { company } = await companyWithLargePart(3);
    const { manifest } = await headOf(company);
    const behind: Table = {
      ...db.direct,
      query: async function* (spec) {
        const isOld = ({ sk }: Item): boolean => !spec.pk.endsWith("#XM") || sk !== manifest.at(-1);
        for await (const item of db.direct.query(spec)) if (isOld(item)) yield item;
      },
    };
    expect((await listOf(behind, company)).result.total).toBe(LARGE);
    await company.expectListsExact(behind);
  });
});

test("a format of a later release in the head or in a part manifest is an error for reads, flushes and checks; nothing is overwritten", async () => {
  for (const damaged of ["head", "part manifest"] as const) {
    const { company, ids } = await companyWithLargePart();
    const { manifest } = await headOf(company);
    const key = damaged === "head" ? keys.indexHead(company.id) : keys.partManifest(company.id, manifest[0] ?? "");
    const item = { ...(await db.direct.get(key)), ...key, format: 3 };
    await db.direct.batchPut([item]);
    await writeSome(company, ids, 1);
    const pattern =
      /the (head of the index|manifest of part \S+ of company \d+) has format 3, and this release reads format 2: a later release has written it/;
    const unreadable = { name: "IndexUnreadable", message: expect.stringMatching(pattern) };
    await expect(company.expectListsExact()).rejects.toMatchObject(unreadable);
    await expect(flushAll(company)).rejects.toMatchObject(unreadable);
    const { faults } = await verify(company);
    expect(faults).toEqual([expect.stringMatching(pattern)]);
    expect(await db.direct.get(key)).toEqual(item);
  }
});
