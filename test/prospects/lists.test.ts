/** Tests that lists and creates use no outdated cached data, and that the cache of rows is bounded for each company. */
import { describe, expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { type Part, partManifestItem, readManifest } from "#shared/company-index/manifest.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { COMPANY_BYTES, keptBytes, recentRows, TOTAL_BYTES } from "#shared/prospects/list/page-rows.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { outdated, pass } from "../harness/faulty-dynamodb.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import * as verbs from "../harness/verbs.ts";
import { type Company, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
const clock = { now: () => now.ms };

const newFunction = (): ApiContext => warmFunction(db, clock);
const list = (context: ApiContext, { caller }: Company, query: Record<string, string> = {}) =>
  listProspects(context, caller, ListQuery.parse(query));
const create = (context: ApiContext, { caller }: Company, input: NewProspect) =>
  verbs.createProspect(context, caller, input);
const newStatus = (context: ApiContext, { caller }: Company, value: string) =>
  verbs.createStatus(context, caller.companyId, { value });

describe("the rows of a page", () => {
  test.each([
    ["one by one", 3],
    ["by their span", 40],
  ])("that are read %s are read again if a replica was outdated", async (_, count) => {
    const company = await newCompany(newFunction());
    for (let i = 0; i < count; i++) await create(newFunction(), company, { name: `n${i}` });
    db.plan(outdated);
    const { result, usage } = await metered(() => list(contextOn(db.table, clock), company));
    expect(result.items).toHaveLength(count);
    expect(result.total).toBe(count);
    // Three rounds of requests read the state of the search index, then the rows (outdated), and then the same rows with a consistent read.
    expect(usage.rounds).toBe(3);
    db.plan(() => pass);
    // All rows are in memory now, so the next list reads only the state of the search index.
    expect((await metered(() => list(contextOn(db.table, clock), company))).usage.rounds).toBe(1);
  });

  test("that no longer match when they are read are neither in the page nor in the total", async () => {
    const company = await newCompany(newFunction());
    const [open, closed] = [
      await newStatus(newFunction(), company, "Open"),
      await newStatus(newFunction(), company, "Closed"),
    ];
    const made = [];
    for (let i = 0; i < 3; i++) made.push(await create(newFunction(), company, { currentStatusId: open.id }));
    const [first, second, third] = made.map(({ id }) => id);
    const others = newFunction();
    const writes = [
      () => verbs.updateProspect(others, company.caller, first ?? 0, { currentStatusId: closed.id }),
      () => verbs.deleteProspect(others, company.caller, second ?? 0),
    ];
    const context = contextOn(db.table, clock);
    await list(context, company, AFTER_ALL);
    const meanwhile = async () => {
      for (const write of writes.splice(0)) await write();
    };
    db.plan((operation, _, body) => (isLook(operation, body) ? { kind: "late", meanwhile } : pass));
    const page = await list(context, company, { status: "Open" });
    expect(writes).toEqual([]);
    expect(page.items.map(({ id }) => id)).toEqual([third]);
    expect(page.total).toBe(1);
  });

  // A rename follows each read for which `isLook` or `isAnyRead` is true. The last rename is too late for the list.
  test.each([
    ["after each snapshot are read again, and no other rows are", isLook, { name: "1", writes: 2, rounds: 3 }],
    [
      "around each snapshot are shown in their current state after two snapshots",
      isAnyRead,
      { name: "5", writes: 6, rounds: 6 },
    ],
  ] as const)("that change %s", async (_, isDisturbed, expected) => {
    const { company, ids, context, others } = await fortyIndexed();
    let writes = 0;
    const meanwhile = () => verbs.updateProspect(others, company.caller, ids[7] ?? 0, { name: `${++writes}` });
    db.plan((operation, _, body) => (isDisturbed(operation, body) ? { kind: "late", meanwhile } : pass));
    const { result, usage } = await metered(() => list(context, company));
    expect(result.items.map(({ id }) => id)).toEqual(ids.toReversed());
    const name = result.items.find(({ id }) => id === ids[7])?.name;
    expect({ name, writes, rounds: usage.rounds, total: result.total }).toEqual({ ...expected, total: 40 });
  });

  test.each(["status", "search"] as const)(
    "that keep changing make the list fail if the rows alone cannot show that they match: by %s",
    async (filter) => {
      const company = await newCompany(newFunction());
      const open = await newStatus(newFunction(), company, "Open");
      const closed = await newStatus(newFunction(), company, "Closed");
      const others = contextOn(db.direct, clock);
      const { id: a } = await create(others, company, { currentStatusId: open.id });
      const { id: b } = await create(others, company, { currentStatusId: closed.id });
      await verbs.createNote(others, company.caller, a, { body: "a zebra" });
      let [isOpen, isClosed] = [a, b];
      let writes = 0;
      // Exchanges the statuses of the two prospects. The test does this after each read of the list, so that the prospect which the index
      // has found as open is closed when its row is read.
      const swap = async () => {
        await verbs.updateProspect(others, company.caller, isOpen, { currentStatusId: closed.id });
        await verbs.updateProspect(others, company.caller, isClosed, { currentStatusId: open.id });
        [isOpen, isClosed] = [isClosed, isOpen];
      };
      const rename = () => verbs.updateProspect(others, company.caller, a, { name: `${++writes}` });
      const meanwhile = filter === "status" ? swap : rename;
      db.plan((operation, _, body) => (isAnyRead(operation, body) ? { kind: "late", meanwhile } : pass));
      const query = filter === "status" ? { status: "Open" } : { search: "zebra" };
      await expect(list(contextOn(db.table, clock), company, query)).rejects.toThrow("keeps changing");
      db.plan(() => pass);
      const items = (await list(contextOn(db.table, clock), company, query)).items;
      expect(items.map(({ id }) => id)).toEqual([filter === "status" ? isOpen : a]);
    },
  );
});

/** Returns a company with 40 prospects, and the contexts of a function that has listed them (`context`) and of another one (`others`). */
async function fortyIndexed() {
  const company = await newCompany(newFunction());
  const others = contextOn(db.direct, clock);
  const ids: number[] = [];
  for (let i = 0; i < 40; i++) ids.push((await create(others, company, { name: "0" })).id);
  const context = contextOn(db.table, clock);
  await list(context, company, AFTER_ALL);
  return { company, ids, context, others };
}

/** The number of a page after the last prospect. Such a list is empty. It loads the search index into memory, but no rows. */
const AFTER_ALL = { page: "2" };

/** Returns true if the call is the Query that reads the state of the search index. */
function isLook(operation: string, body: Record<string, unknown>): boolean {
  return operation === "Query" && /"C#\d+#X"/.test(JSON.stringify(body));
}

/** Returns true if the call reads the state of the search index, or rows of prospects. */
function isAnyRead(operation: string, body: Record<string, unknown>): boolean {
  return isLook(operation, body) || /"C#\d+#P#/.test(JSON.stringify(body));
}

describe("names that another process changes", () => {
  test("take effect in the next list, pins and filter", async () => {
    const company = await newCompany(newFunction());
    const { companyId } = company.caller;
    const [warm, other] = [newFunction(), newFunction()];
    const status = await newStatus(other, company, "Before");
    const tag = await verbs.createTag(other, companyId, { value: "Tag" });
    const { repId } = company;
    const fields = { currentStatusId: status.id, assignedToUserId: repId, lat: 1, lng: 1 };
    const { id } = await create(other, company, fields);
    await verbs.setTags(other, company.caller, id, { tagIds: [tag.id] });
    const shown = async () => (await list(warm, company)).items[0];
    const pins = async () => JSON.parse([...(await mapPins(warm, company.caller, {}))].join(""));
    expect(await shown()).toMatchObject({ currentStatus: { value: "Before" }, assignedTo: { firstName: "A" } });

    await verbs.updateStatus(other, companyId, status.id, { value: "After", color: "#123456" });
    expect(await shown()).toMatchObject({ currentStatus: { value: "After" } });
    expect(await pins()).toEqual([{ id, lat: 1, lng: 1, statusColor: "#123456" }]);
    expect((await list(warm, company, { status: "before" })).total).toBe(0);
    expect((await list(warm, company, { status: "after" })).total).toBe(1);

    await verbs.updateUser(other, company.caller, repId, { firstName: "Zoe" });
    expect(await shown()).toMatchObject({ assignedTo: { firstName: "Zoe" } });
    await verbs.updateTag(other, companyId, tag.id, { value: "Renamed" });
    expect(await shown()).toMatchObject({ tags: [{ tag: { value: "Renamed" } }] });
    await verbs.deleteTag(other, companyId, tag.id);
    expect(await shown()).toMatchObject({ tags: [] });
  });

  test("make a create show a new name and accept a new status", async () => {
    const company = await newCompany(newFunction());
    const [warm, other] = [newFunction(), newFunction()];
    const status = await newStatus(other, company, "Open");
    await create(warm, company, { currentStatusId: status.id, assignedToUserId: company.repId });

    await verbs.updateStatus(other, company.caller.companyId, status.id, { value: "Renamed" });
    const named = await create(warm, company, { currentStatusId: status.id });
    expect(named.currentStatus).toMatchObject({ value: "Renamed" });

    const newer = await newStatus(other, company, "Newer");
    expect((await create(warm, company, { currentStatusId: newer.id })).currentStatus).toMatchObject({
      value: "Newer",
    });
  });
});

const damages: [string, (table: Table, companyId: number, part: Part) => Promise<unknown>][] = [
  [
    "a segment is missing",
    (table, companyId, part) => table.batchRemove([keys.indexItem(companyId, part.segments[0]?.id ?? "", "main", 0)]),
  ],
  ["a part has no manifest", (table, companyId, { id }) => table.batchRemove([keys.partManifest(companyId, id)])],
  [
    "the manifest of a part has an unknown format",
    (table, companyId, part) => table.batchPut([{ ...partManifestItem(companyId, part, 0, []), format: 9 }]),
  ],
  [
    "the head row has an unknown format",
    (table, companyId) => table.write({ update: keys.indexHead(companyId), change: { set: { format: 9 } } }),
  ],
];

test.each(damages)("a damaged index answers unavailable when %s", async (_, inflict) => {
  const company = await newCompany(newFunction());
  const { companyId } = company.caller;
  const context = newFunction();
  for (let i = 0; i < 3; i++) await create(context, company, { lat: i, lng: i });
  await flush(context, companyId, { least: 1, settleMs: 0 });
  const { head } = await readUnflushed(context.table, companyId);
  const { parts } = await readManifest(context.table, companyId, head.manifest);
  const [part] = parts;
  if (part === undefined) throw new Error("there is no part");
  await inflict(context.table, companyId, part);
  const refused = { code: "unavailable", cause: { name: "IndexUnreadable" } };
  await expect(list(newFunction(), company)).rejects.toMatchObject(refused);
  await expect(mapPins(newFunction(), company.caller, {})).rejects.toMatchObject(refused);
});

test("a list in a warm function reads only the prospects that have changed since an earlier list", async () => {
  const [warm, others] = [newFunction(), newFunction()];
  const company = await newCompany(others);
  const { caller } = company;
  const ids: number[] = [];
  for (let i = 0; i < 30; i++) ids.push((await verbs.createProspect(others, caller, { name: `n${i}` })).id);
  const first = await list(warm, company);
  const again = await metered(() => list(warm, company));
  expect(again.result).toEqual(first);
  expect(again.usage.rounds).toBe(1);
  await verbs.updateProspect(others, caller, ids[7] ?? 0, { name: "changed" });
  const changed = await metered(() => list(warm, company));
  expect(changed.usage.rounds).toBe(2);
  expect(changed.usage.readUnits - again.usage.readUnits).toBeLessThanOrEqual(1);
  expect(changed.result.items.filter(({ name }) => name === "changed").map(({ id }) => id)).toEqual([ids[7]]);
});

test("the rows in memory of one company never exceed their part of the memory, and a change of names removes them", () => {
  const table = {};
  const idsIn = (companyId: number, namesVersion = 1): number => {
    const rows = recentRows(table, companyId, namesVersion);
    expect(rows.bytes).toBeLessThanOrEqual(COMPANY_BYTES);
    return Array.from({ length: 100 }, (_, id) => rows.get(id)).filter((kept) => kept !== undefined).length;
  };
  const textBytes = COMPANY_BYTES / 100;
  for (let companyId = 1; companyId <= 12; companyId++) {
    const rows = recentRows(table, companyId, 1);
    for (let id = 1; id <= 60; id++) rows.set(id, 1, { row: prospectRow({ id, version: 1 }), textBytes });
  }
  const found = Array.from({ length: 12 }, (_, i) => idsIn(i + 1));
  expect(found.filter((count) => count > 0).length).toBeLessThanOrEqual(TOTAL_BYTES / COMPANY_BYTES);
  expect(found.at(-1)).toBe(Math.floor(COMPANY_BYTES / keptBytes(textBytes)));
  expect(idsIn(12, 2)).toBe(0);
});
