/** Simulates the prospects that one environment of the list function keeps in memory (shared/prospects/list/recent-rows.ts). */
import { COMPANY_BYTES, keptBytes, TOTAL_BYTES } from "#shared/prospects/list/recent-rows.ts";
import { LISTED_PROSPECTS, PAGE_SIZE } from "./assumptions.ts";

const COMPANIES = TOTAL_BYTES / COMPANY_BYTES;

/**
 * The pages of one company in memory. Each page belongs to one rep. The value of a page is the number of writes that this rep had sent when
 * the page was last listed.
 */
type Pages = Map<string, number>;

export class RowMemory {
  readonly #companies = new Map<number, Pages>();
  readonly #pagesOfCompany: number;

  /** @param textBytes length of the JSON text of a prospect's row */
  constructor(textBytes: number) {
    this.#pagesOfCompany = Math.floor(COMPANY_BYTES / (PAGE_SIZE * keptBytes(textBytes)));
  }

  /**
   * Returns the share of the page's prospects that a list must read from the table, and then keeps the page in memory.
   *
   * @param writes the number of writes of the rep so far; each of them has changed one of the prospects that the rep lists
   */
  read(company: number, page: string, writes: number): number {
    const pages: Pages = this.#companies.get(company) ?? new Map();
    // A `Map` keeps the order of insertion, and each use inserts the entry again. The company and the page that were used least recently
    // therefore come first.
    this.#companies.delete(company);
    this.#companies.set(company, pages);
    dropFirst(this.#companies, COMPANIES);
    const before = pages.get(page);
    pages.delete(page);
    pages.set(page, writes);
    dropFirst(pages, this.#pagesOfCompany);
    return before === undefined ? 1 : 1 - (1 - 1 / LISTED_PROSPECTS) ** (writes - before);
  }
}

function dropFirst<Key>(map: Map<Key, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}
