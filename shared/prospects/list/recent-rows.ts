/**
 * Keeps the prospects of recent pages in memory. The search index contains the current version of each prospect, so a list reads only the
 * prospects that are new or changed since an earlier list.
 *
 * Each change of a prospect gives it a higher version number. Two rows of a prospect with the same version are therefore equal. There is
 * one exception: the restore of a company brings back rows with older versions, and later changes use these version numbers again. A
 * restore therefore also changes the version of the company's names (its statuses, tags and users). When the version of the names changes,
 * all rows of the company are removed from the memory.
 */
import type { ProspectRef } from "#shared/company-index/search/page.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { ListedRow } from "#shared/prospects/stored.ts";

/** Maximum memory for the prospects of one company. It is enough for about 1 000 prospects, which are 20 pages of 50. */
export const COMPANY_BYTES = 2 * 1024 * 1024;
/**
 * Maximum memory for the prospects of all companies. When it is exceeded, the company that was listed least recently loses its prospects
 * first.
 */
export const TOTAL_BYTES = 12 * COMPANY_BYTES;
/** Estimated memory of a prospect without its strings. */
const BYTES_PER_ROW = 1_000;

/** Returns the estimated memory of a prospect. A character takes at most two bytes. */
export const keptBytes = (textBytes: number): number => BYTES_PER_ROW + 2 * textBytes;

export interface RecentRows {
  readonly bytes: number;
  /** Returns the prospect if it is in memory in this version or a later one. The caller must not change it. */
  get(ref: Pick<ProspectRef, "id" | "version">): ListedRow | undefined;
  /** Keeps the row, unless the same or a later version is in memory. `textBytes` is the length of the stored row's JSON text. */
  keep(row: ListedRow, textBytes: number): void;
}

interface AllRecentRows {
  bytes(): number;
  ofCompany(companyId: number, namesVersion: number): RecentRows;
}

const opened = new WeakMap<Reads, AllRecentRows>();

/**
 * Returns the prospects of one company that are in memory. The prospects of different tables are kept apart.
 *
 * @param namesVersion the version of the company's names (statuses, tags and users); if it has changed since the last call, the memory of
 * the company is emptied
 */
export function recentRows(table: Reads, companyId: number, namesVersion: number): RecentRows {
  const known = opened.get(table) ?? openRecentRows();
  opened.set(table, known);
  return known.ofCompany(companyId, namesVersion);
}

export function openRecentRows(companyBytes = COMPANY_BYTES, totalBytes = TOTAL_BYTES): AllRecentRows {
  const companies = new Map<number, CompanyRows>();
  const bytesOfAll = (): number => [...companies.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    bytes: bytesOfAll,
    ofCompany(companyId, namesVersion) {
      const known = companies.get(companyId);
      const company = known?.namesVersion === namesVersion ? known : new CompanyRows(namesVersion, companyBytes);
      // A Map keeps the order of insertion. Deleting a company and inserting it again moves it to the end. The first company is therefore
      // the one that was listed least recently.
      companies.delete(companyId);
      let excess = bytesOfAll() + companyBytes - totalBytes;
      for (const [id, { bytes }] of companies) {
        if (excess <= 0) break;
        companies.delete(id);
        excess -= bytes;
      }
      companies.set(companyId, company);
      return company;
    },
  };
}

interface Kept {
  readonly row: ListedRow;
  readonly bytes: number;
}

class CompanyRows implements RecentRows {
  readonly namesVersion: number;
  bytes = 0;
  readonly #rows = new Map<number, Kept>();
  readonly #maxBytes: number;

  constructor(namesVersion: number, maxBytes: number) {
    this.namesVersion = namesVersion;
    this.#maxBytes = maxBytes;
  }

  get({ id, version }: Pick<ProspectRef, "id" | "version">): ListedRow | undefined {
    const kept = this.#rows.get(id);
    if (kept === undefined || kept.row.version < version) return undefined;
    this.#rows.delete(id);
    this.#rows.set(id, kept);
    return kept.row;
  }

  keep(row: ListedRow, textBytes: number): void {
    const known = this.#rows.get(row.id);
    if (known !== undefined && known.row.version >= row.version) return;
    this.#remove(row.id, known);
    const kept = { row, bytes: keptBytes(textBytes) };
    this.#rows.set(row.id, kept);
    this.bytes += kept.bytes;
    for (const [id, oldest] of this.#rows) {
      if (this.bytes <= this.#maxBytes) break;
      this.#remove(id, oldest);
    }
  }

  #remove(id: number, kept: Kept | undefined): void {
    if (kept === undefined) return;
    this.#rows.delete(id);
    this.bytes -= kept.bytes;
  }
}
