/**
 * Measures the costs of reads (budgets 1 to 5 and 8 of docs/benchmarks.md). Unless the text of a budget says otherwise, a warm function has
 * the company's search index in memory, but no rows of prospects.
 */
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { readManifest } from "#shared/company-index/manifest.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import type { Key } from "#shared/db/keys.ts";
import { metered, type Usage } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import { gzipped } from "#shared/http/gzip.ts";
import * as limits from "#shared/limits.ts";
import { criteriaOf } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { getUser } from "#shared/reference/users.ts";
import { forgetRows } from "../harness/forget-rows.ts";
import { createAccount, createKey } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { type ListName, listNames, listQuery, pinTexts } from "./lists.ts";
import { bboxOf, cities, outskirtsOf } from "./places.ts";
import type { Stage } from "./stage.ts";
import type { BenchTable } from "./table.ts";

export interface WarmUsage {
  readonly lists: ReadonlyMap<ListName, Usage>;
  /**
   * Pages of the list without a filter. The prospects of a page are stored next to each other, usually in two partitions. The read units
   * depend on how many of these prospects each partition contains.
   */
  readonly neighbours: readonly Usage[];
  /** A list whose rows are in memory, because the previous list has read them. */
  readonly again: Usage;
  readonly pins: Usage;
}

const NEIGHBOUR_PAGES = 16;

/** Writes the rows of the pages that the measured lists return. */
export async function fillLists(stage: Stage): Promise<void> {
  for (const name of listNames) await stage.fill(listQuery(stage.company, name));
  for (let page = 2; page <= NEIGHBOUR_PAGES; page++) await stage.fill(listQuery(stage.company, "everything", page));
}

/** Measures lists and pins in a warm function. Call `fillLists` before, because the lists read the rows that it writes. */
export async function warmUsage({ context, caller, company }: Stage): Promise<WarmUsage> {
  const askAgain = async (query: ListQuery) => (await metered(() => listProspects(context, caller, query))).usage;
  const ask = (query: ListQuery) => {
    forgetRows(context.table, caller.companyId);
    return askAgain(query);
  };
  const lists = new Map<ListName, Usage>();
  for (const name of listNames) {
    await ask(listQuery(company, name));
    lists.set(name, await ask(listQuery(company, name)));
  }
  const neighbours: Usage[] = [];
  for (let page = 1; page <= NEIGHBOUR_PAGES; page++)
    neighbours.push(await ask(listQuery(company, "everything", page)));
  const again = await askAgain(listQuery(company, "everything", NEIGHBOUR_PAGES));
  await mapPins(context, caller, {});
  return { lists, neighbours, again, pins: (await metered(() => mapPins(context, caller, {}))).usage };
}

const mean = (usages: readonly Usage[]): number =>
  usages.reduce((sum, { readUnits }) => sum + readUnits, 0) / usages.length;

export function warmBudgets({ company }: Stage, { lists, neighbours, again, pins }: WarmUsage): Budget[] {
  const most = (field: "readUnits" | "rounds", usages: readonly Usage[]): number =>
    Math.max(...usages.map((usage) => usage[field]));
  const all = [...lists.values()];
  const line = budgetsOf(sizeOf(company.count));
  return [
    line(1, "warm list, maximum of all filters, read units", 26, most("readUnits", all)),
    line(1, `warm list of neighbours, mean of ${NEIGHBOUR_PAGES} pages, read units`, 6, mean(neighbours)),
    line(1, "warm list with its rows in memory, read units", 1, again.readUnits),
    line(3, "warm list with its rows in memory, rounds", 1, again.rounds),
    line(3, "warm list, rounds", 2, most("rounds", [...all, ...neighbours])),
    line(8, "warm pins, read units", 1, pins.readUnits),
    line(8, "warm pins, rounds", 1, pins.rounds),
  ];
}

/** Measures the read units of a large company, divided by those of a smaller one (budget 2). */
export function growthBudgets(small: Stage, large: Stage, few: WarmUsage, many: WarmUsage): Budget[] {
  const line = budgetsOf(`${sizeOf(large.company.count)} / ${sizeOf(small.company.count)}`);
  const unitsOf = ({ lists }: WarmUsage): number => lists.get("one rep")?.readUnits ?? Number.NaN;
  return [
    line(2, "units of warm lists of neighbours, ratio", 1, mean(many.neighbours) / mean(few.neighbours)),
    line(2, "units of a warm list of one rep, ratio", 1, unitsOf(many) / unitsOf(few)),
    line(2, "units of warm pins, ratio", 1, many.pins.readUnits / few.pins.readUnits),
  ];
}

/** Measures a list in a cold function: its rounds (budget 3 of docs/benchmarks.md) and its read units (budget 4). */
export async function coldBudgets(stage: Stage): Promise<Budget[]> {
  const { company, caller } = stage;
  const line = budgetsOf(sizeOf(company.count));
  const ask = async (name: ListName) =>
    (await metered(() => listProspects(stage.cold(), caller, listQuery(company, name)))).usage;
  const plain = await ask("one rep");
  const search = await ask("common word");
  const thousands = company.count / 1_000;
  // Below 100 000 prospects, most read units are for the rows of the page and not for the index, so the read units have no limit.
  const most = (limit: number): number | null => (company.count < 100_000 ? null : limit);
  const per = "read units per 1 000 prospects";
  return [
    line(3, "cold list, rounds", 3, Math.max(plain.rounds, search.rounds)),
    line(4, `cold list, ${per}`, most(1.7), plain.readUnits / thousands),
    line(4, `cold list with search, ${per}`, most(8), search.readUnits / thousands),
  ];
}

/** Measures the share of the search index that a cold function reads for a map window (budget 5). */
export async function bboxBudgets(stage: Stage): Promise<Budget[]> {
  const { company, context } = stage;
  const { head } = await readUnflushed(context.table, company.id);
  const { parts } = await readManifest(context.table, company.id, head.manifest);
  const segments = parts.flatMap((part) => part.segments).length;
  const read = async (bboxes: readonly string[]): Promise<BboxRead[]> => {
    const reads: BboxRead[] = [];
    for (const bbox of bboxes) reads.push(await readBbox(stage, bbox, segments));
    return reads;
  };
  const middles = await read(cities.map(bboxOf));
  const outskirts = await read(cities.map(outskirtsOf));
  const both = [...middles, ...outskirts];
  const largestPart = Math.max(...both.map(({ part }) => part));
  const dearest = (reads: readonly BboxRead[]): number => Math.max(...reads.map(({ looked }) => looked));
  const line = budgetsOf(sizeOf(company.count));
  const name = "map window of 0.2 degrees";
  const compared = "rows compared / returned, maximum";
  // Smaller companies have few segments, of which one or two contain a whole city, so the budget has no limit.
  const most = company.count >= 1_000_000 ? 10 : null;
  return [
    line(5, `${name}, cold, maximum of 32, % of segments read`, most, largestPart),
    line(5, `${name}, centers of ${cities.length} cities, ${compared}`, 1.4, dearest(middles)),
    line(5, `${name}, outskirts of ${cities.length} cities, ${compared}`, 1.4, dearest(outskirts)),
  ];
}

interface BboxRead {
  /** The loaded segments, as a percentage of all segments. */
  readonly part: number;
  /** Rows of the index that the list compares with the box, for each returned prospect. */
  readonly looked: number;
}

async function readBbox(stage: Stage, bbox: string, segments: number): Promise<BboxRead> {
  const { company, caller, cold, clock } = stage;
  const { table } = cold();
  const asked: Key[] = [];
  const batchGet: Table["batchGet"] = (keys, how) => {
    asked.push(...keys);
    return table.batchGet(keys, how);
  };
  const { page, pageSize, ...filter } = ListQuery.parse({ bbox });
  const { matches } = await findProspects(contextOn({ ...table, batchGet }, clock), company.id, (names) =>
    criteriaOf(filter, caller, names),
  );
  const { total, looked } = matches;
  // A segment consists of several rows, but every read of a segment includes its row `main#0`. So these rows give the loaded segments.
  const mains = asked.filter(({ sk }) => sk === "main#0");
  const loaded = new Set(mains.map(({ pk }) => pk.slice(pk.lastIndexOf("#") + 1)));
  return { part: (100 * loaded.size) / segments, looked: looked / total };
}

/** Measures the bytes that a phone downloads for one map pin (budget 8). */
export async function pinBudgets({ company, caller, context }: Stage): Promise<Budget[]> {
  const { texts, pins } = await pinTexts(context, caller);
  const zipped = await buffer(Readable.from(gzipped(texts)));
  return [budgetsOf(sizeOf(company.count))(8, "bytes of a pin, gzipped", 16, zipped.length / pins)];
}

/**
 * Measures the rounds (budget 3) of a detail in a warm function, of the first request of a cold function, and of the authorizer, which is
 * another function.
 */
export async function roundsBudgets(stage: Stage, id: number): Promise<Budget[]> {
  const { company, caller, sub } = stage;
  const rounds = async (work: (context: ApiContext) => Promise<unknown>, context = stage.cold()): Promise<number> =>
    (await metered(() => work(context))).usage.rounds;
  const line = budgetsOf(sizeOf(company.count));
  return [
    line(3, "get, rounds", 1, await rounds((context) => readProspect(context, caller, id), stage.context)),
    line(3, "the authorizer's look-up, rounds", 1, await rounds((context) => lookUpCaller(context, sub))),
    line(3, "cold pins, rounds", 2, await rounds((context) => mapPins(context, caller, {}))),
    line(3, "cold get, rounds", 1, await rounds((context) => readProspect(context, caller, id))),
  ];
}

/**
 * Measures the units of the authorizer. The API key belongs to an account with the maximum number of keys, because one row contains all
 * keys of an account.
 */
export async function authorizerBudgets(table: BenchTable): Promise<Budget[]> {
  const context = contextOn(table.open());
  const owner = await newOwner(context);
  const { sub } = await getUser(context, owner.companyId, owner.userId);
  const { id } = await createAccount(context, owner, { name: "program", role: "admin", permissions: [] });
  const fields = { name: "Production", scopes: ["prospects:read" as const, "prospects:write" as const] };
  for (let i = 1; i < limits.keysPerAccount; i++) await createKey(context, owner, id, fields);
  const { key } = await createKey(context, owner, id, fields);
  const byKey = async () => (await metered(() => callerOfKey(context, key))).usage;
  const [first, ofKey] = [await byKey(), await byKey()];
  const ofToken = (await metered(() => lookUpCaller(context, sub))).usage;
  const line = budgetsOf("");
  return [
    line(3, "authorizer with an access token, read units", 1, ofToken.readUnits),
    line(3, "authorizer with an API key, read units", 1, ofKey.readUnits),
    line(3, "authorizer with an API key, write units in 15 minutes", 2, first.writeUnits + ofKey.writeUnits),
  ];
}
