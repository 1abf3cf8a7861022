/** Reads the rows of one page of prospects at low cost. Rows with neighbouring ids are read by one Query, and other rows one by one. */
import type { StaleSnapshot } from "#shared/company-index/read/company-index.ts";
import type { ProspectRef } from "#shared/company-index/search/page.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { type StoredProspect, sampledProspect } from "#shared/prospects/stored.ts";

/** Estimated bytes that a Query reads for each prospect. Rows have 600 to 900 bytes. */
const BYTES_PER_PROSPECT = 1_024;
/** Bytes that an eventually consistent Query reads for half a read unit. A single row costs half a unit even if it is smaller. */
const BYTES_PER_HALF_UNIT = 4_096;
/** A Query is an additional request. It must save at least this number of half read units. */
const WORTH_A_REQUEST = 2;

/**
 * Number of reads that accept only rows with exactly the version in the index. Later reads also accept a newer row that still belongs to
 * the list. A page with many concurrent writes therefore succeeds too.
 */
const EXACT_READS = 2;

/** Returns the rows in the order of `refs`. `belongs` must return whether a row passes the filters of the list. */
export type PageRows = (
  refs: readonly ProspectRef[],
  belongs: (row: StoredProspect) => boolean,
) => Promise<StoredProspect[] | StaleSnapshot>;

/**
 * Returns a function that reads the rows of one page, and that may be called again with a later read of the index. The first read is
 * eventually consistent, at half the price. Rows that are older than the index are read again. If a row is newer, the function reports
 * that the index read is stale.
 */
export function pageRows(table: Reads, companyId: number): PageRows {
  const found = new Map<number, StoredProspect>();
  const isBehind = ({ id, version }: ProspectRef): boolean => (found.get(id)?.version ?? 0) < version;
  let reads = 0;
  return async (refs, belongs) => {
    if (++reads === 1) await readRows(table, companyId, refs, found);
    const behind = refs.filter(isBehind);
    for (const item of await table.batchGet(behind.map(({ id }) => keys.prospect(companyId, id)))) keep(item, found);
    const rows: StoredProspect[] = [];
    for (const ref of refs) {
      const row = found.get(ref.id);
      const isExact = row?.version === ref.version;
      if (row === undefined || !(isExact || (!isBehind(ref) && reads > EXACT_READS && belongs(row)))) {
        return { staleBecause: `prospect ${ref.id} was written after the snapshot` };
      }
      rows.push(row);
    }
    return rows;
  };
}

async function readRows(
  table: Reads,
  companyId: number,
  refs: readonly ProspectRef[],
  into: Map<number, StoredProspect>,
): Promise<void> {
  const single: number[] = [];
  const reads: Promise<void>[] = [];
  for (const ids of Map.groupBy(
    refs.map(({ id }) => id),
    blockOf,
  ).values()) {
    const [first, last] = [Math.min(...ids), Math.max(...ids)];
    if (halfUnits(last - first + 1) + WORTH_A_REQUEST > ids.length) single.push(...ids);
    else reads.push(readSpan(table, companyId, first, last, into));
  }
  const batch = table.batchGet(
    single.map((id) => keys.prospect(companyId, id)),
    { consistency: "eventual" },
  );
  const [items] = await Promise.all([batch, ...reads]);
  for (const item of items) keep(item, into);
}

const halfUnits = (prospects: number): number => Math.ceil((prospects * BYTES_PER_PROSPECT) / BYTES_PER_HALF_UNIT);

async function readSpan(
  table: Reads,
  companyId: number,
  first: number,
  last: number,
  into: Map<number, StoredProspect>,
): Promise<void> {
  const span = keys.prospectSpan(companyId, first, last);
  for await (const item of table.query({ ...span, consistency: "eventual" })) {
    if (item.type === "prospect") keep(item, into);
  }
}

function keep(item: Item, into: Map<number, StoredProspect>): void {
  const row = sampledProspect(item);
  into.set(row.id, row);
}
