/**
 * Reads the rows of one page of prospects. For each block of 128 ids, chooses the cheaper of two ways: one Query for an id range, or single
 * rows.
 */
import type { StaleSnapshot } from "#shared/company-index/read/company-index.ts";
import type { ProspectRef } from "#shared/company-index/search/page.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";

/** Estimated number of bytes that a Query reads for each prospect of an id range. Rows have 600 to 900 bytes. */
const BYTES_PER_PROSPECT = 1_024;
/**
 * Number of bytes that an eventually consistent Query reads for half a read unit. A row of a batch costs half a unit even if it is smaller.
 */
const BYTES_PER_HALF_UNIT = 4_096;
/** Least number of half read units that a Query must save, because it is an additional request. */
const WORTH_A_REQUEST = 2;

/**
 * Number of reads that accept only rows with exactly the version in the index. Later reads also accept a newer row that still belongs to
 * the list.
 */
const EXACT_READS = 2;

/** Returns the rows of a page in the order of `refs`. `belongs` returns whether the current row passes the filters of the list. */
export type PageRows = (
  refs: readonly ProspectRef[],
  belongs: (row: StoredProspect) => boolean,
) => Promise<StoredProspect[] | StaleSnapshot>;

/**
 * Returns a function that reads the rows for one list, which may need several snapshots. A row that two snapshots contain is read only
 * once, so that a page under concurrent writes needs few snapshots. The first read is eventually consistent, at half the price. The index
 * contains the version of each row, so that an outdated row is recognised and read again. The snapshot is stale if a row is newer than the
 * index.
 */
export function pageRows(table: Table, companyId: number): PageRows {
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
  table: Table,
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
  table: Table,
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
  const row = StoredProspect.parse(item);
  into.set(row.id, row);
}
