/** Tests imports that update prospects from an edited export. They must change exactly the edited cells, at a bounded cost and memory. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import Papa from "papaparse";
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { RequestContext } from "#shared/jobs/import/import.ts";
import { FileKeys, findMatches } from "#shared/jobs/import/match.ts";
import type { ImportOptions } from "#shared/jobs/import/stored.ts";
import * as limits from "#shared/limits.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { sized } from "../harness/tier.ts";
import { createNote, deactivateStatus, deleteProspect, importFile, updateProspect } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";
import { exportedText } from "./import-checks.ts";

const db = faultyDynamoDb();
const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
const objects: RequestContext["objects"] = { put: async () => undefined };
const newFunction = (): RequestContext => ({ ...warmFunction(db, { now: () => now.ms++ }), objects });

type Row = Record<string, string>;

async function exported(context: RequestContext, caller: Caller): Promise<Row[]> {
  const text = await exportedText(context, caller);
  return Papa.parse<Row>(text.trimEnd(), { header: true, delimiter: ",", newline: "\r\n" }).data;
}

const importing = (context: RequestContext, caller: Caller, rows: readonly Row[], options: ImportOptions) =>
  importFile(context, caller, Buffer.from(Papa.unparse([...rows])), options);
const update = { matchBy: "id", onMatch: "update" } as const;
const byEmail = { matchBy: "emailAddress", onMatch: "update" } as const;
const bySourceId = { matchBy: "sourceId", onMatch: "update" } as const;

const seed = [
  "name,phone,email,lat,lng,address1,address2,city,state,zip,status,tags,notes,source,sourceId",
  'Ann,+1 303 555 0142,ann@x.test,39.5,-105,1 Main St,,Denver,CO,02108,New,"hail;roof","first\nsecond",door,A-1',
  "Bo,,bo@x.test,39.6,-105.1,,,,,,Sold,,,,A-2",
  "Cy,555,,,,2 Main St,Suite 2,Boulder,CO,80301,,roof,=1+1,,",
].join("\n");

async function seeded() {
  const context = newFunction();
  const company = await newCompany(context);
  const { caller, repId } = company;
  await importFile(context, caller, Buffer.from(seed));
  const rep: Caller = { ...caller, userId: repId, role: "sales", permissions: ["canManageProspects"] };
  const rows = await exported(context, caller);
  const shown = () => Promise.all(rows.map(({ id }) => readProspect(context, caller, Number(id))));
  return { context, caller, rep, rows, shown };
}
const idOf = (rows: readonly Row[], name: string): number =>
  Number(rows.find((row) => row.name === name)?.id ?? expect.fail(`no ${name}`));

/** The texts that a test writes into the cells of each column. None is empty, because an empty cell changes nothing. */
const edits: Readonly<Record<string, readonly string[]>> = {
  name: ["Zoë", '6" pipe, "q"', "=2+2", "line\nbreak"],
  phone: ["+49 30 1", "-1"],
  email: ["new@x.test", "Other@X.test"],
  lat: ["1.25", "-0.0000001"],
  lng: ["179.5", "0"],
  address1: ["9 Elm St"],
  address2: ["Floor 3"],
  city: ["Aurora"],
  state: ["NY"],
  zip: ["00501"],
  status: ["Go Back", "New"],
  tags: ["solar", "roof;solar"],
  notes: ["called", "=call"],
  source: ["web"],
};
const guard = (text: string): string =>
  /^[=+\-@\t\r\n\0\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) && !/^[\d +\-().]+$/.test(text) ? `'${text}` : text;

test("an exported file that is edited and imported changes exactly the edited cells", { tags: "sized" }, async () => {
  const edit = fc
    .constantFrom(...Object.keys(edits))
    .chain((column) => fc.record({ column: fc.constant(column), text: fc.constantFrom(...(edits[column] ?? [""])) }));
  const plan = fc.array(fc.record({ at: fc.nat({ max: 2 }), edit }), { maxLength: 6 });
  const columns = fc.subarray(Object.keys(edits));
  const holds = async (changes: { at: number; edit: { column: string; text: string } }[], left: string[]) => {
    const { context, caller, rows, shown } = await seeded();
    const expected = structuredClone(rows);
    for (const { at, edit } of changes) {
      const row = expected[at] ?? {};
      // If the edit is in a part of an address, it changes the prospect only if the prospect has an address. A column that the file does
      // not contain changes nothing.
      const isPart = ["address1", "address2", "city", "state", "zip"].includes(edit.column);
      if (!left.includes(edit.column) && !(isPart && row.address1 === "")) row[edit.column] = guard(edit.text);
    }
    const file = expected.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([name]) => !left.includes(name))),
    );
    const result = await importing(context, caller, file, update);
    expect(result).toMatchObject({ imported: 0, updated: 3, skipped: 0, errors: [] });
    expect(await exported(context, caller)).toEqual(expected);
    // The second import of the same file must change nothing, so the versions of the prospects must not change.
    const before = await shown();
    expect(await importing(context, caller, file, update)).toMatchObject({ updated: 3 });
    expect(await shown()).toEqual(before);
    expect(await checkIndex(context.table, caller.companyId)).toEqual([]);
  };
  await fc.assert(fc.asyncProperty(plan, columns, holds), { numRuns: sized({ short: 5, wide: 200 }) });
});

test("a file of all columns with a mark makes the same prospects in another company, and changes nothing in its own", async () => {
  const { context, caller, rows, shown } = await seeded();
  const customFieldData = { roof: ["=a", { b: 1e300 }], " ": null };
  await updateProspect(context, caller, idOf(rows, "Bo"), { secondaryPhoneNumber: "+1 555", customFieldData });
  const file = await exportedText(context, caller, { columns: "all", bom: true });
  expect(file).toMatch(/^\uFEFFid,.*,createdAt,sourceId,secondaryPhoneNumber,updatedAt,customFieldData\r\n/);
  const before = await shown();
  expect(await importFile(context, caller, Buffer.from(file), update)).toMatchObject({ updated: 3, skipped: 0 });
  expect(await shown()).toEqual(before);
  const other = await newCompany(context);
  const withoutUsers = Buffer.from(file.replaceAll(/[^,]*@example.test/g, ""));
  const result = await importFile(context, other.caller, withoutUsers);
  expect(result).toMatchObject({ imported: 3, ignoredColumns: ["id", "createdBy", "createdAt", "updatedAt"] });
  const [bo] = (await exported(context, other.caller)).filter(({ name }) => name === "Bo");
  const made = await readProspect(context, other.caller, Number(bo?.id));
  expect(made).toMatchObject({ secondaryPhoneNumber: "+1 555", sourceId: "A-2" });
  expect(made.customFieldData).toEqual(customFieldData);
});

test("an update writes status history and notes as the API does, and a file may have few columns besides the key", async () => {
  const { context, caller, rows } = await seeded();
  const id = idOf(rows, "Bo");
  const file = [{ id: String(id), status: "New", notes: "called" }];
  expect(await importing(context, caller, file, update)).toMatchObject({ updated: 1, skipped: 0 });
  const { currentStatus, statusHistory, notes } = await readProspect(context, caller, id);
  expect(currentStatus).toMatchObject({ value: "New" });
  expect(statusHistory).toMatchObject([
    { status: { value: "New" }, previousStatus: { value: "Sold" }, source: "csv-import" },
    { status: { value: "Sold" }, previousStatus: null },
  ]);
  expect(notes).toMatchObject([{ body: "called" }]);
  await createNote(context, caller, id, { body: "later" });
  await importing(context, caller, file, update);
  expect((await readProspect(context, caller, id)).notes.map(({ body }) => body)).toEqual(["later", "called"]);
});

describe("a row", () => {
  test("with an id of no prospect, a deleted one, another company's or an invisible one has the same error and changes nothing", async () => {
    const [{ context, caller, rep, rows }, other] = [await seeded(), await seeded()];
    const [hidden, deleted] = [idOf(rows, "Ann"), idOf(rows, "Bo")];
    await deleteProspect(context, caller, deleted);
    const ids = ["999999", String(deleted), String(idOf(other.rows, "Ann")), String(hidden), "007", "x", "1e3"];
    const file = ids.map((id) => ({ id, name: "changed", lat: "1", lng: "2" }));
    const { imported, updated, errors } = await importing(context, rep, file, update);
    expect([imported, updated]).toEqual([0, 0]);
    const messages = new Set(errors.map(({ message }) => message));
    expect(messages).toEqual(new Set(["id: must be the id of a prospect that you can see"]));
    expect(errors.map(({ row }) => row)).toEqual([2, 3, 4, 5, 6, 7, 8]);
    expect((await readProspect(context, caller, hidden)).name).toBe("Ann");
    expect((await readProspect(other.context, other.caller, idOf(other.rows, "Ann"))).name).toBe("Ann");
  });

  test("of blanks changes nothing, and blank parts of an address make no address", async () => {
    const { context, caller, rows, shown } = await seeded();
    const blank = Object.fromEntries(Object.keys(edits).map((column) => [column, " \u200B\u00A0"]));
    const file = rows.map(({ id = "" }) => ({ ...blank, id }));
    const before = await shown();
    expect(await importing(context, caller, file, update)).toMatchObject({ updated: 3, skipped: 0 });
    expect(await shown()).toEqual(before);
    const located = [{ ...blank, lat: "1", lng: "2" }];
    expect(await importing(context, caller, located, { dryRun: true })).toMatchObject({ imported: 1 });
    const unlocated = [{ ...blank, name: "x", city: "Denver" }];
    expect(await importing(context, caller, unlocated, {})).toMatchObject({ imported: 0, skipped: 1 });
  });

  test("with an empty key, or with a source id or e-mail that no visible prospect has, creates a prospect", async () => {
    const { context, caller, rep } = await seeded();
    const point = { lat: "1", lng: "2" };
    const unkeyed = [{ id: "", name: "new", ...point }];
    expect(await importing(context, caller, unkeyed, update)).toMatchObject({ imported: 1 });
    // The rep may not see the prospects with this source id or this e-mail address, so the row must match none of them.
    const file = [{ sourceId: "A-1", email: "ann@x.test", name: "own", ...point }];
    expect(await importing(context, rep, file, bySourceId)).toMatchObject({ imported: 1, updated: 0 });
    expect(await importing(context, rep, file, bySourceId)).toMatchObject({ imported: 0, updated: 1 });
    expect(await importing(context, rep, file, byEmail)).toMatchObject({ imported: 0, updated: 1 });
    // The owner sees two prospects with this source id and this e-mail address. The import cannot decide between them, so it skips the row.
    for (const by of [bySourceId, byEmail]) {
      const column = by.matchBy === "sourceId" ? "sourceId" : "email";
      const errors = [{ row: 2, message: `${column}: several prospects have this value` }];
      expect(await importing(context, caller, file, by)).toMatchObject({ skipped: 1, errors });
    }
  });

  test("matches an e-mail address without case, and a source id without outer blanks", async () => {
    const { context, caller, rows } = await seeded();
    await importing(context, caller, [{ email: " ANN@X.TEST ", name: "by mail" }], byEmail);
    await importing(context, caller, [{ sourceId: " A-2 ", name: "by source" }], bySourceId);
    expect((await readProspect(context, caller, idOf(rows, "Ann"))).name).toBe("by mail");
    expect((await readProspect(context, caller, idOf(rows, "Bo"))).name).toBe("by source");
    const other = [{ sourceId: "a-2", lat: "1", lng: "2" }];
    expect(await importing(context, caller, other, bySourceId)).toMatchObject({ imported: 1 });
  });

  test("with the key of an earlier row has an error that names the earlier row", async () => {
    const { context, caller } = await seeded();
    const emails = ["ann@x.test", "new@x.test", "ANN@x.test", "New@x.test"];
    const file = emails.map((email) => ({ email, lat: "1", lng: "2" }));
    for (const options of [{ ...byEmail, dryRun: true }, byEmail]) {
      expect(await importing(context, caller, file, options)).toMatchObject({
        imported: 1,
        updated: 1,
        skipped: 2,
        errors: [
          { row: 4, message: "email: row 2 has the same value" },
          { row: 5, message: "email: row 3 has the same value" },
        ],
      });
    }
  });

  test("is skipped or creates a prospect if the import asks for that", async () => {
    const { context, caller, rows } = await seeded();
    const id = idOf(rows, "Ann");
    const file = [{ sourceId: "A-1", name: "x", lat: "1", lng: "2" }];
    const result = await importing(context, caller, file, { matchBy: "sourceId", onMatch: "skip" });
    const errors = [{ row: 2, message: `sourceId: prospect ${id} has this value already` }];
    expect(result).toMatchObject({ imported: 0, updated: 0, skipped: 1, errors });
    const creating = { matchBy: "sourceId", onMatch: "create" } as const;
    expect(await importing(context, caller, file, creating)).toMatchObject({ imported: 1 });
    expect((await readProspect(context, caller, id)).name).toBe("Ann");
  });

  test("may keep a deactivated status, but not choose it", async () => {
    const { context, caller, rows } = await seeded();
    const { statuses } = await loadDictionary(context.table, caller.companyId);
    const sold = [...statuses.values()].find(({ value }) => value === "Sold") ?? expect.fail("no status");
    await deactivateStatus(context, caller.companyId, sold.id);
    const file = ["Ann", "Bo"].map((name) => ({ id: String(idOf(rows, name)), status: "sold", name: "changed" }));
    const errors = [{ row: 2, message: "status: must be the value of an active status" }];
    expect(await importing(context, caller, file, update)).toMatchObject({ updated: 1, skipped: 1, errors });
    expect((await readProspect(context, caller, idOf(rows, "Ann"))).name).toBe("Ann");
    expect((await readProspect(context, caller, idOf(rows, "Bo"))).name).toBe("changed");
  });

  test("cannot give a prospect a part of an address that it does not have", async () => {
    const { context, caller, rows } = await seeded();
    const file = [{ id: String(idOf(rows, "Bo")), zip: "80202" }];
    expect(await importing(context, caller, file, update)).toMatchObject({ updated: 0, skipped: 1 });
    const ofAnn = [{ id: String(idOf(rows, "Ann")), zip: "00501" }];
    expect(await importing(context, caller, ofAnn, update)).toMatchObject({ updated: 1 });
    const address = { address1: "1 Main St", zip: "00501", formattedAddress: "1 Main St, Denver, CO 00501" };
    expect((await readProspect(context, caller, idOf(rows, "Ann"))).address).toMatchObject(address);
  });
});

test("a concurrent change of another field survives the update", async () => {
  const { context, caller, rows } = await seeded();
  const id = idOf(rows, "Ann");
  await Promise.all([
    ...Array.from({ length: 10 }, (_, i) =>
      updateProspect(newFunction(), caller, id, { secondaryPhoneNumber: `${i}`, customFieldData: { i } }),
    ),
    importing(context, caller, [{ id: String(id), name: "imported", tags: "new tag" }], update),
  ]);
  const found = await readProspect(context, caller, id);
  expect(found).toMatchObject({ name: "imported", tags: [{ tag: { value: "new tag" } }] });
  expect(found.customFieldData).toEqual({ i: Number(found.secondaryPhoneNumber) });
});

test.each([
  ["gets a new key", (caller: Caller, id: number) => updateProspect(newFunction(), caller, id, { sourceId: "other" })],
  ["is deleted", (caller: Caller, id: number) => deleteProspect(newFunction(), caller, id)],
] as const)("a row whose prospect %s after the look-up is skipped", async (_, change) => {
  const { context, caller, rows } = await seeded();
  const id = idOf(rows, "Bo");
  const { sk } = keys.prospect(caller.companyId, id);
  let isFirst = true;
  const get: typeof context.table.get = async (key) => {
    if (isFirst && key.sk === sk) {
      isFirst = false;
      await change(caller, id);
    }
    return context.table.get(key);
  };
  const later = { ...context, table: { ...context.table, get } };
  const message = "the matching prospect was changed or deleted during the import";
  const result = await importing(later, caller, [{ sourceId: "A-2", name: "imported" }], bySourceId);
  expect(result).toMatchObject({ updated: 0, skipped: 1, errors: [{ row: 2, message }] });
});

test("the file must name the column of the key", async () => {
  const { context, caller } = await seeded();
  await expect(importing(context, caller, [{ name: "x" }], update)).rejects.toThrow("must name the column id");
  // An import without updates ignores the column `id`.
  const plain = await importing(context, caller, [{ id: "1", name: "x", lat: "1", lng: "2" }], {});
  expect(plain.ignoredColumns).toEqual(["id"]);
  const { ignoredColumns } = await importing(context, caller, [{ id: "", name: "x", lat: "1", lng: "2" }], update);
  expect(ignoredColumns).toEqual([]);
});

/** Returns the bytes of memory that are in use after a garbage collection. */
function reachableBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  // The first collection frees array buffers in the background. The second collection waits until they are freed.
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

describe("cost", () => {
  const COUNT = 600;

  test("a look-up costs at most 0.2 read units for each row, by id as well as by e-mail address or source id", async () => {
    const context = newFunction();
    const { caller } = await newCompany(context);
    const many = Array.from({ length: COUNT }, (_, i) => `n${i},m${i}@x.test,S-${i},1,2`);
    await importFile(context, caller, Buffer.from(["name,email,sourceId,lat,lng", ...many].join("\n")));
    const rows = await exported(context, caller);
    const file = rows.map(({ id = "", email = "" }, i) => ({ id, email, sourceId: `S-${i}`, name: `n${i}` }));
    for (const by of [update, byEmail, bySourceId]) {
      const { usage } = await metered(() => importing(newFunction(), caller, file, { ...by, dryRun: true }));
      expect(usage.readUnits, by.matchBy).toBeLessThanOrEqual(0.2 * COUNT + 5);
      // The import reads each block of 128 prospects with one Query.
      expect(usage.requests, by.matchBy).toBeLessThanOrEqual(COUNT / 128 + 8);
    }
    const few = [file[0] ?? {}, file[400] ?? {}];
    const { usage } = await metered(() => importing(newFunction(), caller, few, { ...update, dryRun: true }));
    expect(usage.readUnits).toBeLessThanOrEqual(2 + 5);
    const changed = file.slice(0, 100).map(({ id }) => ({ id, name: "changed" }));
    const written = (await metered(() => importing(newFunction(), caller, changed, update))).usage;
    // Each update reads the prospect's row once. It then writes the row and its entry for the search index in one transaction, which costs
    // two units for each of these two writes.
    expect(written.writeUnits).toBeLessThanOrEqual(4 * 100 + 18);
    expect(written.readUnits).toBeLessThanOrEqual(100 + 0.2 * COUNT + 10);
    const unchanged = (await metered(() => importing(newFunction(), caller, changed, update))).usage;
    expect(unchanged.writeUnits).toBeLessThanOrEqual(18);
  });

  test("an import within a request reads no more prospects than its limit, and then names the import job", async () => {
    const { context, caller } = await seeded();
    const keysByEmail = new FileKeys("emailAddress");
    keysByEmail.add(2, "ann@x.test");
    const looking = (prospects: number) =>
      findMatches(context.table, caller, keysByEmail, {
        onProgress: async () => undefined,
        most: { prospects, blocks: 1 },
      });
    expect((await looking(3)).of(2)).toMatchObject({ kind: "one" });
    await expect(looking(2)).rejects.toThrow(/at most 2 prospects, .* job, .*: POST \/api\/prospects\/imports\.$/);
    expect(limits.importMatchProspects).toBe(10_000);
  });

  test("in a company with more than 300 blocks of ids, an import within a request may match by id only", async () => {
    const { context, caller, rows } = await seeded();
    const { companyId } = caller;
    const range = { type: "prospectRange", from: 9_000_001, to: 9_000_300 };
    await context.table.batchPut([{ ...keys.prospectRange(companyId, range.from), ...range }]);
    const file = [{ id: String(idOf(rows, "Ann")), email: "ann@x.test", name: "x" }];
    const { usage } = await metered(async () => {
      await expect(importing(context, caller, file, byEmail)).rejects.toThrow("at most 300 blocks of 128 ids");
    });
    // The import is refused before it reads a prospect. It reads only the names of the company's users, statuses and tags, and the ranges
    // of ids that the company has reserved for its prospects.
    expect(usage.requests).toBeLessThanOrEqual(4);
    expect(await importing(context, caller, file, update)).toMatchObject({ updated: 1 });
  });

  test("the keys of a million rows take at most 120 MB", { tags: "sized" }, () => {
    const rows = sized({ short: 100_000, wide: 1_000_000 });
    const before = reachableBytes();
    const fileKeys = new FileKeys("sourceId");
    for (let row = 2; row < rows + 2; row++) fileKeys.add(row, `source-${row % 1_000 === 0 ? 7 : row}`);
    for (let id = 1; id <= 1_000; id++) fileKeys.meet(id, `source-${id + 1}`);
    fileKeys.meet(1_001, "source-3");
    const matches = fileKeys.matches();
    const used = reachableBytes() - before;
    expect(used).toBeLessThan(120 * rows);
    expect(matches.of(2)).toEqual({ kind: "one", id: 1 });
    expect(matches.of(3)).toEqual({ kind: "several" });
    expect(matches.of(1_000)).toEqual({ kind: "repeated", row: 7 });
    expect(matches.of(5_001)).toEqual({ kind: "none" });
  });
});
