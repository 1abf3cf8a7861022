/** Tests that an export is complete, or breaks the connection, during writes, with stale reads and with failures of the table. */
import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import { addRows } from "#shared/company-index/write/publish.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { denver } from "../../infra/local/demo/cities.ts";
import { type DemoCompany, demoRows } from "../../infra/local/demo/prospects.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { outdated, pass, throttle } from "../harness/faulty-dynamodb.ts";
import { bytesOf } from "../harness/item-bytes.ts";
import { sized } from "../harness/tier.ts";
import { createNote, createProspect, deleteProspect, updateProspect } from "../harness/verbs.ts";
import { type Company, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const clock = { now: () => Date.parse("2030-01-01T00:00:00.000Z") };
const newFunction = (): ApiContext => warmFunction(db, clock);

/** Exports the prospects and returns the rows as objects. Calls `meanwhile` after the first piece of the text. */
async function exported(
  context: ApiContext,
  { caller }: Pick<Company, "caller">,
  query: Record<string, string> = {},
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<Record<string, string>[]> {
  let text = "";
  let isFirst = true;
  for await (const piece of await exportProspects(context, caller, ProspectFilter.parse(query))) {
    text += piece;
    if (isFirst) await meanwhile();
    isFirst = false;
  }
  return parse(text, { columns: true, record_delimiter: "\r\n" });
}

const names = (rows: readonly Record<string, string>[]) => rows.map(({ name }) => name);

/** Creates a demo company. `ids` contains the ids of its prospects in the order of the list. */
async function demoCompany(
  count: number,
): Promise<Company & { readonly ids: readonly number[]; readonly bytes: number }> {
  const context = newFunction();
  const company = await newCompany(context);
  const { companyId, userId } = company.caller;
  const { statuses } = await loadDictionary(context.table, companyId);
  const plan: DemoCompany = {
    id: companyId,
    city: denver,
    statuses: [...statuses.values()],
    tagIds: [],
    repIds: [company.repId],
    ownerId: userId,
  };
  const ids = await context.ids.takeProspects(companyId, count);
  const { rows, indexed } = await demoRows(context, plan, ids, randomSequence(1));
  await context.table.batchPut(rows);
  await addRows(context, companyId, indexed);
  const stored = rows.filter(({ pk }) => pk.startsWith(`C#${companyId}#P#`));
  return { ...company, ids, bytes: stored.reduce((sum, row) => sum + bytesOf(row), 0) };
}

test("a whole company is exported in the order of the list, for the read units of one read of its bytes", async () => {
  const company = await demoCompany(3_000);
  const context = newFunction();
  // This export has no prospects. It loads names and the search index, whose cost the measured export must not include.
  await exported(context, company, { dateFrom: "2031-01-01" });
  const { result, usage } = await metered(() => exported(context, company));
  expect(result.map(({ id }) => Number(id))).toEqual(company.ids);
  const index = (await metered(() => exported(context, company, { dateFrom: "2031-01-01" }))).usage.readUnits;
  expect(usage.readUnits - index).toBeLessThanOrEqual((1.05 * company.bytes) / 8_192);
});

test("a few of the prospects are read one by one", async () => {
  const company = await demoCompany(1_000);
  const context = newFunction();
  const { result, usage } = await metered(() => exported(context, company, { search: "alvarez" }));
  expect(result.length).toBeLessThan(100);
  expect(usage.readUnits).toBeLessThan(company.bytes / 8_192 / 2);
  expect(result.every(({ name }) => name?.includes("Alvarez"))).toBe(true);
});

test("exports the newest rows and notes, which are read in blocks, although eventual reads are stale", async () => {
  const company = await demoCompany(600);
  const context = newFunction();
  const [first = 0, second = 0] = company.ids;
  for (const body of ["old", "new"]) await createNote(context, company.caller, first, { body });
  await updateProspect(context, company.caller, second, { name: "written since" });
  const whole = await exported(context, company);
  expect(whole.find(({ id }) => id === String(first))?.notes).toBe("new");
  db.plan(outdated);
  const again = await exported(contextOn(db.table, clock), company);
  expect(again).toEqual(whole);
  expect(names(again)).toContain("written since");
});

test("changes during the export appear, and deleted or invisible prospects are left out", async () => {
  const company = await demoCompany(2_000);
  const context = newFunction();
  const others = newFunction();
  const [changed = 0, deleted = 0, moved = 0] = company.ids.slice(-3);
  for (const id of [changed, deleted, moved])
    await updateProspect(others, company.caller, id, { assignedToUserId: company.repId });
  const rep = { caller: { ...company.caller, userId: company.repId, role: "sales" as const } };
  const before = (await exported(context, rep)).length;
  const rows = await exported(context, rep, {}, async () => {
    await updateProspect(others, company.caller, changed, { name: "changed" });
    await deleteProspect(others, company.caller, deleted);
    await updateProspect(others, company.caller, moved, { assignedToUserId: null });
    await createProspect(others, company.caller, { name: "too late", assignedToUserId: company.repId });
  });
  expect(before).toBeGreaterThan(1_000);
  expect(rows).toHaveLength(before - 2);
  expect(names(rows)).toContain("changed");
  expect(names(rows)).not.toContain("too late");
});

test("a permanent failure of the table at any call breaks the stream", { tags: "sized" }, async () => {
  const company = await demoCompany(1_500);
  const context = contextOn(db.table, clock);
  const whole = await exported(context, company);
  let calls = 0;
  db.plan((operation) => {
    if (operation === "Query") calls++;
    return pass;
  });
  expect(await exported(context, company)).toEqual(whole);
  const all = calls;
  expect(all).toBeGreaterThan(5);
  for (let last = 0; last < all; last += sized({ short: 9, wide: 1 })) {
    let seen = 0;
    db.plan((operation) => (operation === "Query" && seen++ >= last ? throttle : pass));
    await expect(exported(context, company), `after ${last} calls`).rejects.toThrow();
  }
});
