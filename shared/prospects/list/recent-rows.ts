/**
 * Keeps the prospects of recent pages in memory, so that a list reads only those that are new or changed. Two rows of a prospect with the
 * same version are equal, except after the restore of a company, which brings back older versions. A restore therefore also changes the
 * version of the dictionary, which empties the memory of the company.
 */
import type { ProspectRef } from "#shared/company-index/search/page.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { ListedRow } from "#shared/prospects/stored.ts";

/** Maximum memory for the prospects of one company. It is enough for about 1 000 prospects, which are 20 pages of 50. */
export const COMPANY_BYTES = 2 * 1024 * 1024;
/** When it is exceeded, the company that was listed least recently loses its prospects first. */
export const TOTAL_BYTES = 12 * COMPANY_BYTES;
/** Estimated memory of a prospect without its strings. */
const BYTES_PER_ROW = 1_000;

/** A character takes at most two bytes. */
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
 * The prospects of different tables are kept apart. A change of `namesVersion`, the version of the dictionary, empties the memory of the
 * company.
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
      // A Map keeps the order of insertion, so the first company is the one that was listed least recently.
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
