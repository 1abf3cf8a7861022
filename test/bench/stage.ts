/**
 * Creates a company with any number of prospects. The search index contains all of them, but the table only the rows that a bench reads,
 * because it would take long to write all rows.
 */
import type { Caller } from "#shared/auth/caller.ts";
import { type Clock, iso } from "#shared/clock.ts";
import type { Criteria } from "#shared/company-index/criteria.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { pageOf } from "#shared/company-index/search/page.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { addRows } from "#shared/company-index/write/publish.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf, IDS_PER_PARTITION } from "#shared/db/keys.ts";
import { criteriaOf, type ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered, findProspects } from "#shared/prospects/find.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import type { ListQuery } from "#shared/prospects/list/list.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import type { StoredTag } from "#shared/reference/schema.ts";
import { newValueWrites } from "#shared/reference/values.ts";
import { addRep } from "../harness/warm-function.ts";
import { type BenchCompany, makeProspect } from "./prospects.ts";
import type { BenchTable } from "./table.ts";

const REPS = 40;
const TAGS = ["Hail Damage", "Referral", "Insurance", "Solar", "Battery"] as const;
/** Rows of one import, all of which are in memory at the same time. */
const IMPORT_ROWS = 100_000;

export interface Stage {
  readonly company: BenchCompany;
  readonly caller: Caller;
  readonly sub: string;
  readonly context: ApiContext;
  readonly clock: Clock & { ms: number };
  /** The context of a newly started function, whose caches are empty. */
  cold(): ApiContext;
  /**
   * Writes the rows of the page that this query returns, and the rows between them in the same partition, because the service may read a
   * range of a partition instead of single rows.
   */
  fill(query: ListQuery): Promise<void>;
  /** Writes the prospects with the lowest ids. */
  fillFirst(count: number): Promise<void>;
}

export async function setStage(table: BenchTable, count: number): Promise<Stage> {
  const clock = { ms: Date.UTC(2026, 4, 2), now: () => clock.ms };
  const context = contextOn(table.open(), clock);
  const sub = `bench-${count}`;
  const company = await foundCompany(context, count, sub);
  await fillIndex(context, company);
  const caller: Caller = { companyId: company.id, userId: company.ownerId, role: "owner", permissions: [] };
  const written = new Set<number>();
  const write = async (ids: readonly number[]): Promise<void> => {
    const missing = ids.filter((id) => !written.has(id));
    await writeRows(context, company, missing);
    for (const id of missing) written.add(id);
  };
  return {
    company,
    caller,
    sub,
    context,
    clock,
    cold: () => contextOn(table.open(), clock),
    fill: async (query) => write(await idsOfPage(context, caller, query)),
    fillFirst: (rows) => write(Array.from({ length: rows }, (_, i) => company.firstId + i)),
  };
}

export async function foundCompany(context: ApiContext, count: number, at = `bench-${count}`): Promise<BenchCompany> {
  const { company, owner } = await createCompany(context, {
    name: at,
    owner: { email: `owner@${at}.test`, firstName: "Olivia", lastName: "Owner", sub: at },
  });
  const dated = { createdAt: iso(context.clock.now()), updatedAt: iso(context.clock.now()), version: 1 };
  for (let rep = 1; rep <= REPS; rep++) {
    await addRep(context, company.id, { email: `rep${rep}@${at}.test`, firstName: "Rep", lastName: `Number ${rep}` });
  }
  for (const value of TAGS) {
    const tag: StoredTag = { type: "tag", id: await context.ids.next(), value, color: "#2563EB", ...dated };
    await context.table.transact(newValueWrites(company.id, tag));
  }
  const { statuses, tags, users } = await loadDictionary(context.table, company.id);
  // The last prospect always has the last id of its partition, so the newest prospects of small and large companies have the same positions
  // in their partitions.
  const spare = (IDS_PER_PARTITION - (count % IDS_PER_PARTITION)) % IDS_PER_PARTITION;
  const [firstId = 0] = await context.ids.takeProspects(company.id, spare + count);
  return {
    id: company.id,
    ownerId: owner.id,
    statuses: [...statuses.values()],
    repIds: [...users.keys()].filter((id) => id !== owner.id),
    tagIds: [...tags.keys()],
    firstId: firstId + spare,
    count,
  };
}

/** Imports the prospects into the company's search index. A flush then merges the parts of the imports. */
async function fillIndex(context: ApiContext, company: BenchCompany): Promise<void> {
  for (let from = 0; from < company.count; from += IMPORT_ROWS) {
    const count = Math.min(IMPORT_ROWS, company.count - from);
    const rows = Array.from({ length: count }, (_, i): RowWithNotes => {
      const { prospect, note } = makeProspect(company, from + i);
      return { row: indexRow(prospect), notes: note === undefined ? [] : [indexNote(note)] };
    });
    await addRows(context, company.id, rows);
  }
  await flush(context, company.id, { least: 0, settleMs: 0 });
}

/** Loads the company index into memory. Each call of the returned `find` then searches it without reading the table. */
export async function searchInMemory(
  { context, caller, company }: Stage,
  filter: ProspectFilter,
): Promise<{ criteria: Criteria; find: () => Promise<Matches> }> {
  const { criteria } = await findProspects(context, company.id, (names) => criteriaOf(filter, caller, names));
  const unflushed = await readUnflushed(context.table, company.id);
  const find = async (): Promise<Matches> =>
    (await findProspects(context, company.id, () => criteria, { unflushed })).matches;
  return { criteria, find };
}

async function idsOfPage(
  context: ApiContext,
  caller: Caller,
  { page, pageSize, ...filter }: ListQuery,
): Promise<number[]> {
  const { matches } = await findFiltered(context, caller, filter);
  const places = pageOf(matches, (page - 1) * pageSize, pageSize);
  const ids: number[] = [];
  for (const block of Map.groupBy(
    places.map(({ id }) => id),
    blockOf,
  ).values()) {
    for (let id = Math.min(...block); id <= Math.max(...block); id++) ids.push(id);
  }
  return ids;
}

async function writeRows(context: ApiContext, company: BenchCompany, ids: readonly number[]): Promise<void> {
  const made = ids.map((id) => makeProspect(company, id - company.firstId));
  await context.table.batchPut(
    made.flatMap(({ prospect, note }) => [
      { ...keys.prospect(company.id, prospect.id), ...prospectItem(prospect) },
      ...(note === undefined
        ? []
        : [{ ...attachedKeys.note(company.id, prospect.id, note.createdAt, note.id), ...note }]),
    ]),
  );
}
