/** Tests unflushed long texts: searches find them, other requests do not become more expensive, and a killed flush loses none. */
import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "vitest";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { FLUSH_ENTRIES, flush } from "#shared/company-index/write/flush.ts";
import { flushStream } from "#shared/company-index/write/flush-stream.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { imageOf } from "../../infra/local/sources/stream-record.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { deaths, killedAt } from "../harness/kills.ts";
import { createNote, createProspect, deleteNote, updateNote, updateProspect } from "../harness/verbs.ts";
import { type Company, newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const clock = { now: () => Date.parse("2030-01-01T00:00:00.000Z") };
const newFunction = (): ApiContext => warmFunction(db, clock);
/** Creates a company with one prospect. */
async function stage() {
  const context = newFunction();
  const company = await newCompany(context);
  const { caller } = company;
  const { id } = await createProspect(context, caller, { name: "n" });
  return { context, company, caller, companyId: caller.companyId, id };
}
const list = (context: ApiContext, { caller }: Company, search = "") =>
  listProspects(context, caller, ListQuery.parse({ search }));
const long = (word: string): string => `${word} ${"x".repeat(9_000)}`;
const unitsOf = async (work: () => Promise<unknown>): Promise<number> => (await metered(work)).usage.readUnits;

const sideRows = (context: ApiContext, companyId: number) =>
  Array.fromAsync(context.table.query(keys.deltaTexts(companyId)), ({ sk }) => sk);

test("100 unflushed notes of 9 KB cost a list as much as 100 short notes; a search finds them in one round trip", async () => {
  const { context, company, companyId, id } = await stage();
  const name = long("prospect").slice(0, 255);
  const { id: other } = await createProspect(context, company.caller, { name, address });
  await list(context, company);
  const before = await unitsOf(() => list(context, company));
  for (let i = 0; i < 100; i++) await createNote(context, company.caller, id, { body: long(`word${i}!`) });
  const after = await unitsOf(() => list(context, company));
  // One read unit covers 14 short entries, so the 100 notes may add at most 100 / 14 units. A list that costs more has also read the long
  // texts, which it must not do.
  expect(after - before).toBeLessThanOrEqual(100 / 14);
  for (const word of ["word0!", "WORD99!", "prospect"]) {
    const { result, usage } = await metered(() => list(context, company, word));
    expect(result.items.map((item) => item.id)).toEqual([word === "prospect" ? other : id]);
    // One round means that all requests to the table run at the same time: the long texts are not read after the search index. The
    // prospects of the page need no request, because they are already in memory.
    expect(usage.rounds).toBe(1);
  }
  expect((await list(context, company, "word100!")).total).toBe(0);
  expect((await readUnflushed(context.table, companyId)).weight).toBeGreaterThan(7 * FLUSH_ENTRIES);
  await flush(context, companyId, { settleMs: 0 });
  expect(await sideRows(context, companyId)).toEqual([]);
  expect((await list(newFunction(), company, "word42!")).items.map((item) => item.id)).toEqual([id]);
  expect(await checkIndex(context.table, companyId)).toEqual([]);
});

const address = { address1: "1234 North Camelback Road ".repeat(9), city: "Denver", state: "CO", zip: "80202" };

test("eight entries with long texts trigger a flush, although eight short entries are too few", async () => {
  const { context, company, companyId, id } = await stage();
  await flush(context, companyId, { least: 1, settleMs: 0 });
  const publish = flushStream(() => context);
  const stream = async () => {
    const rows = await Array.fromAsync(context.table.query(keys.index(companyId)));
    const records = rows
      .filter(({ type }) => type === "delta")
      .map((row) => ({ dynamodb: { Keys: { pk: { S: String(row.pk) } }, NewImage: imageOf(marshall(row)) } }));
    await publish({ Records: JSON.parse(JSON.stringify(records)) });
  };
  await stream();
  for (let i = 0; i < 6; i++) await createNote(context, company.caller, id, { body: long(`${i}`) });
  await stream();
  expect((await readUnflushed(context.table, companyId)).keys).toHaveLength(6);
  for (let i = 0; i < 2; i++) await createNote(context, company.caller, id, { body: long(`${i}`) });
  await stream();
  expect((await readUnflushed(context.table, companyId)).keys).toHaveLength(0);
});

test.each(deaths)("a flush that is killed %s any call loses no text and leaves none behind", async (_, death) => {
  const { context, company, caller, id } = await stage();
  for (let killedCall = 1; killedCall <= 12; killedCall++) {
    const kept = await createNote(context, caller, id, { body: long(`kept${killedCall}!`) });
    const changed = await createNote(context, caller, id, { body: long(`old${killedCall}!`) });
    await updateNote(context, caller, changed.id, { body: long(`new${killedCall}!`) });
    const gone = await createNote(context, caller, id, { body: long(`gone${killedCall}!`) });
    await deleteNote(context, caller, gone.id);
    await updateProspect(context, caller, id, { address: { ...address, zip: `zip${killedCall}!` } });
    db.plan(killedAt(killedCall, death));
    await flush({ table: db.table, clock }, caller.companyId, { least: 1, settleMs: 0 }).catch(() => undefined);
    db.plan(() => pass);
    for (const [word, total] of [
      [`kept${killedCall}!`, 1],
      [`new${killedCall}!`, 1],
      [`zip${killedCall}!`, 1],
      [`old${killedCall}!`, 0],
      [`gone${killedCall}!`, 0],
    ] as const) {
      expect((await list(newFunction(), company, word)).total, `${word} after call ${killedCall}`).toBe(total);
    }
    await flush(context, caller.companyId, { least: 1, settleMs: 0 });
    expect(await sideRows(context, caller.companyId)).toEqual([]);
    await deleteNote(context, caller, kept.id);
  }
  await flush(context, caller.companyId, { least: 1, settleMs: 0 });
  expect(await checkIndex(context.table, caller.companyId)).toEqual([]);
});

test("a search reads missing texts again by key, and reads a new snapshot if a flush removes the texts", async () => {
  const { context, company, caller, id } = await stage();
  await createNote(context, caller, id, { body: long("early!") });
  const isOfTexts = (body: unknown): boolean => /"C#\d+#XN"/.test(JSON.stringify(body));
  db.plan((operation, _, body) =>
    operation === "Query" && isOfTexts(body)
      ? { kind: "ask", change: (asked) => JSON.parse(JSON.stringify(asked).replaceAll(/#XN"/g, '#none"')) }
      : pass,
  );
  const reader = contextOn(db.table, clock);
  // By this first list, the reader learns that the company has long texts that are not flushed yet. Its next search therefore requests the
  // texts at the same time as the entries of the index.
  await list(reader, company);
  const early = await metered(() => list(reader, company, "early!"));
  expect(early.result.total).toBe(1);
  const meanwhile = async () => {
    await flush(context, caller.companyId, { least: 1, settleMs: 0 });
  };
  let flushed = 0;
  db.plan((operation, _, body) => {
    if (operation !== "Query" || !/"C#\d+#X"/.test(JSON.stringify(body)) || flushed++ > 0) return pass;
    return { kind: "late", meanwhile };
  });
  expect((await list(contextOn(db.table, clock), company, "early!")).total).toBe(1);
});
