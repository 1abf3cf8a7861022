/**
 * Finds prospects that a page of changes can show without reading their rows, because the change log contains copies of their present
 * versions (company-index/copy.ts).
 */
import { copyIn, type ProspectCopy, readCopies, worthReading } from "#shared/company-index/copy.ts";
import { type IndexEntry, type IndexRow, isTombstone } from "#shared/company-index/record.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Reads } from "#shared/db/reads.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import { recentRows } from "#shared/prospects/list/recent-rows.ts";
import type { ListedRow } from "#shared/prospects/stored.ts";
import type { Selected } from "#shared/sync/changes/selection.ts";

export interface Prospects {
  readonly rows: ReadonlyMap<number, ListedRow>;
  /** The copies of further prospects. No prospect has both a row and a copy here. */
  readonly copies: ReadonlyMap<number, ProspectCopy>;
}

/** Returns false if the change log says that the flush has made no copy of the record. */
const hasCopy = ({ change }: Selected): boolean => change.kind !== "prospect" || change.lacksCopy !== true;

/** The copies that were read together with the change log. */
export interface CopiesAtHand {
  /** Entries of the search index that no flush has copied into the change log yet, and that contain a copy. By prospect id. */
  readonly entries: ReadonlyMap<number, IndexRow>;
  /** Rows with copies. Flushes (background jobs that copy changes into the log) have stored them. */
  readonly rows: readonly Item[];
}

/** Maps the ids of prospects to those entries of the search index that contain copies. */
export function entriesWithCopies(entries: readonly IndexEntry[]): ReadonlyMap<number, IndexRow> {
  const found = new Map<number, IndexRow>();
  for (const entry of entries) {
    if (isTombstone(entry) || entry.copy === undefined) continue;
    if ((found.get(entry.id)?.version ?? 0) < entry.version) found.set(entry.id, entry);
  }
  return found;
}

/**
 * Returns the row or the copy of each record, in the record's version or a later one. The rows in memory are used first, and then the
 * copies. A prospect that becomes visible to the caller or ceases to be visible (`moves`) needs its row, because the row says who may have
 * copies of its notes and appointments.
 *
 * @param namesVersion the version of the company's names (statuses, tags and users)
 * @param current ids of further prospects, whose rows must be current; a prospect without a row is left out
 * @param atHand undefined if later chunks of the log may contain newer versions of the records, so that a copy might not show the present
 * state of its prospect
 */
export async function readProspects(
  table: Reads,
  companyId: number,
  records: readonly Selected[],
  namesVersion: number,
  current: ReadonlySet<number>,
  atHand: CopiesAtHand | undefined,
): Promise<Prospects> {
  if (atHand === undefined) {
    return { rows: await rowsAtLeast(table, companyId, records, namesVersion, current), copies: new Map() };
  }
  const recent = recentRows(table, companyId, namesVersion);
  const isCopiable = (record: Selected): boolean =>
    !record.moves && !current.has(record.id) && recent.get(record) === undefined;
  const copies = new Map<number, ProspectCopy>();
  const wanted: Selected[] = [];
  for (const record of records.filter(isCopiable)) {
    const entry = atHand.entries.get(record.id);
    const copy = entry?.version === record.version ? copyIn(entry) : undefined;
    if (copy !== undefined) copies.set(record.id, copy);
    else wanted.push(record);
  }
  const groups = worthReading(companyId, wanted.filter(hasCopy), atHand.rows);
  const expected = new Set(groups.flatMap((group) => group.wanted.map(({ id }) => id)));
  const others = records.filter(({ id }) => !copies.has(id) && !expected.has(id));
  const [found, rows] = await Promise.all([
    readCopies(table, groups, atHand.rows),
    rowsAtLeast(table, companyId, others, namesVersion, current),
  ]);
  for (const [id, copy] of found) copies.set(id, copy);
  const left = wanted.filter(({ id }) => expected.has(id) && !found.has(id));
  if (left.length === 0) return { rows, copies };
  return { rows: new Map([...rows, ...(await rowsAtLeast(table, companyId, left, namesVersion))]), copies };
}
