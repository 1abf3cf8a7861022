/** Reads the rows of a page of prospects, from memory or with a Query over a range of ids where possible. */
import { setTimeout as sleep } from "node:timers/promises";
import { cachePerTable, VersionedCache } from "#shared/cache.ts";
import type { StaleSnapshot } from "#shared/company-index/read/company-index.ts";
import type { ProspectRef } from "#shared/company-index/search/page.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Consistency, Reads } from "#shared/db/reads.ts";
import { TableBusy } from "#shared/errors.ts";
import { type ListedRow, pageProspect } from "#shared/prospects/stored.ts";

/** Estimated bytes of a row in a Query. Rows have 600 to 900 bytes. */
const BYTES_PER_PROSPECT = 1_024;
/** Bytes that an eventually consistent Query reads for half a read unit. A row that is read alone also costs half a unit. */
const BYTES_PER_HALF_UNIT = 4_096;
/** A Query is an additional request to DynamoDB, so it must save at least this number of half read units. */
const WORTH_A_REQUEST = 2;

/** Leaves out the type and the company, which are known, because the SDK needs processor time for each attribute. */
const read = { type: "prospect", fields: ["id", "assignedToUserId", "version", "deletedAt", "fields"] } as const;

const keysOf = (companyId: number, refs: readonly RowRef[]) => refs.map(({ id }) => keys.prospect(companyId, id));

/** Returns the rows in the order of `refs`. Returns StaleSnapshot if a row is newer than the index and `accepts` returns false for it. */
export async function pageRows(
  table: Reads,
  companyId: number,
  namesVersion: number,
  refs: readonly ProspectRef[],
  accepts: (row: ListedRow) => boolean,
): Promise<ListedRow[] | StaleSnapshot> {
  const found = await rowsAtLeast(table, companyId, namesVersion, { refs });
  const rows: ListedRow[] = [];
  for (const { id, version } of refs) {
    const row = found.get(id);
    if (row === undefined || (row.version !== version && !accepts(row))) {
      return { staleBecause: `prospect ${id} was written after the snapshot` };
    }
    rows.push(row);
  }
  return rows;
}

/** A row may become visible after the index entry of the same transaction, so several strongly consistent reads may be needed. */
const STRONG_READS = 8;

type RowRef = Pick<ProspectRef, "id" | "version">;

interface WantedRows {
  /** The rows must have at least these versions. */
  readonly refs?: readonly RowRef[];
  /** Prospects whose rows must be current. The result lacks a prospect without a row. */
  readonly current?: ReadonlySet<number>;
  /** Prospects whose rows may be outdated by less than a second. */
  readonly recent?: ReadonlySet<number>;
}

/** Throws TableBusy if a row is older than in `refs` even after `STRONG_READS` reads. */
export async function rowsAtLeast(
  table: Reads,
  companyId: number,
  namesVersion: number,
  { refs = [], current = new Set(), recent = new Set() }: WantedRows,
): Promise<ReadonlyMap<number, ListedRow>> {
  const kept = recentRows(table, companyId, namesVersion);
  const found = new Map<number, ListedRow>();
  const keep = (item: Item): void => {
    const row = pageProspect(Object.assign(item, { type: read.type, companyId }));
    found.set(row.id, row);
    kept.set(row.id, row.version, { row, textBytes: String(item.fields).length });
  };
  /** False if the row is not in memory in this version or a later one. */
  const recall = ({ id, version }: RowRef): boolean => {
    const known = kept.get(id);
    if (known === undefined || known.version < version) return false;
    found.set(id, known.value.row);
    return true;
  };
  const unread = refs.filter((ref) => !current.has(ref.id) && !recall(ref)).map(({ id }) => id);
  const wanted = new Set(refs.map(({ id }) => id));
  const others = [...recent].filter((id) => !current.has(id) && !wanted.has(id));
  await Promise.all([
    unread.length + others.length === 0 ? undefined : readRows(table, companyId, [...unread, ...others], keep),
    current.size === 0 ? undefined : readRows(table, companyId, [...current], keep, "strong"),
  ]);
  for (let reads = 0; ; reads++) {
    const behind = refs.filter(({ id, version }) => (found.get(id)?.version ?? 0) < version);
    if (behind.length === 0) return found;
    if (reads === STRONG_READS) throw new TableBusy(`prospect ${behind[0]?.id} of company ${companyId} stays outdated`);
    if (reads > 0) await sleep(10 * reads);
    for (const item of await table.batchGet(keysOf(companyId, behind), read)) keep(item);
  }
}

async function readRows(
  table: Reads,
  companyId: number,
  wanted: readonly number[],
  keep: (item: Item) => void,
  consistency: Consistency = "eventual",
): Promise<void> {
  const single: number[] = [];
  const reads: Promise<unknown>[] = [];
  for (const ids of Map.groupBy(wanted, keys.blockOf).values()) {
    const [first, last] = [Math.min(...ids), Math.max(...ids)];
    if (halfUnits(last - first + 1) + WORTH_A_REQUEST > ids.length) single.push(...ids);
    else {
      const span = { ...keys.prospectSpan(companyId, first, last), ...read, consistency };
      reads.push(Array.fromAsync(table.query(span), keep));
    }
  }
  const batch = table.batchGet(
    single.map((id) => keys.prospect(companyId, id)),
    { ...read, consistency },
  );
  const [items] = await Promise.all([batch, ...reads]);
  items.forEach(keep);
}

const halfUnits = (prospects: number): number => Math.ceil((prospects * BYTES_PER_PROSPECT) / BYTES_PER_HALF_UNIT);

/** Maximum memory for the prospects of one company, enough for about 1 000 prospects. */
export const COMPANY_BYTES = 2 * 1024 * 1024;
/** Maximum memory for the prospects of all companies. */
export const TOTAL_BYTES = 12 * COMPANY_BYTES;
/** Estimated memory of a prospect without its strings. */
const BYTES_PER_ROW = 1_000;

/** Estimates the memory of a prospect whose strings have `textBytes` characters. A character takes at most two bytes. */
export const keptBytes = (textBytes: number): number => BYTES_PER_ROW + 2 * textBytes;

export interface RecentRow {
  /** The caller must not change this object. */
  readonly row: ListedRow;
  /** The length of the stored row's JSON text. */
  readonly textBytes: number;
}

type RecentRows = VersionedCache<RecentRow>;

const companies = cachePerTable<RecentRows>({
  // The cache measures its values before the request adds rows to one of them, so the limit leaves room for the rows of one company.
  maxBytes: TOTAL_BYTES - COMPANY_BYTES,
  bytesOf: ({ bytes }) => bytes,
  grows: true,
});

const newRows = (): RecentRows =>
  new VersionedCache({ maxBytes: COMPANY_BYTES, bytesOf: ({ textBytes }) => keptBytes(textBytes) });

/** `namesVersion` is the version of the dictionary. A new version empties the memory of the company. */
export function recentRows(table: object, companyId: number, namesVersion: number): RecentRows {
  const known = companies(table).get(companyId);
  if (known?.version !== namesVersion) companies(table).delete(companyId);
  const rows = known?.version === namesVersion ? known.value : newRows();
  companies(table).set(companyId, namesVersion, rows);
  return rows;
}
