/**
 * Keeps the prospects of recent pages in memory, so that a list reads only those that are new or changed. Two rows of a prospect with the
 * same version are equal, except after the restore of a company, which brings back older versions. A restore therefore also changes the
 * version of the dictionary, which empties the memory of the company.
 */
import { cachePerTable, VersionedCache } from "#shared/cache.ts";
import type { ListedRow } from "#shared/prospects/stored.ts";

/** Maximum memory for the prospects of one company. It is enough for about 1 000 prospects, which are 20 pages of 50. */
export const COMPANY_BYTES = 2 * 1024 * 1024;
/** When it is exceeded, the company that was listed least recently loses its prospects first. */
export const TOTAL_BYTES = 12 * COMPANY_BYTES;
/** Estimated memory of a prospect without its strings. */
const BYTES_PER_ROW = 1_000;

/** A character takes at most two bytes. */
export const keptBytes = (textBytes: number): number => BYTES_PER_ROW + 2 * textBytes;

export interface RecentRow {
  /** The caller must not change it. */
  readonly row: ListedRow;
  /** The length of the stored row's JSON text. */
  readonly textBytes: number;
}

/** The rows of a company, by id and in the version of each row. */
type RecentRows = VersionedCache<RecentRow>;

const companies = cachePerTable<RecentRows>({
  // The rows of the present request are added later, so they have a reserve.
  maxBytes: TOTAL_BYTES - COMPANY_BYTES,
  bytesOf: ({ bytes }) => bytes,
  grows: true,
});

const newRows = (): RecentRows =>
  new VersionedCache({ maxBytes: COMPANY_BYTES, bytesOf: ({ textBytes }) => keptBytes(textBytes) });

/** `namesVersion` is the version of the dictionary. A change of it empties the memory of the company. */
export function recentRows(table: object, companyId: number, namesVersion: number): RecentRows {
  const known = companies(table).get(companyId);
  if (known?.version !== namesVersion) companies(table).delete(companyId);
  const rows = known?.version === namesVersion ? known.value : newRows();
  companies(table).set(companyId, namesVersion, rows);
  return rows;
}
