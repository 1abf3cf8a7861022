/** Reads of the company index: one strongly consistent Query, with the segments kept in memory from read to read. */

import { cacheBytesOf } from "#shared/company-index/cache-size.ts";
import { IndexUnreadable } from "#shared/company-index/compress.ts";
import type { Criteria } from "#shared/company-index/criteria.ts";
import { readUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import { findMatches, type Matches } from "#shared/company-index/match.ts";
import { type AsideTexts, readAsideTexts, TextsMissing, withTexts } from "#shared/company-index/override-texts.ts";
import { Snapshot } from "#shared/company-index/snapshot.ts";
import { readManifest, readSheets, type Sheets } from "#shared/company-index/store.ts";
import { type Delta, newestUnflushed, type RunsInView } from "#shared/company-index/view.ts";
import type { Table } from "#shared/db/table.ts";
import { TableBusy } from "#shared/errors.ts";

/** The memory that functions have unless it is set otherwise: for processes that are no functions. */
const USUAL_MB = 1_024;

/** Attempts at a read whose segments were merged away meanwhile. What is really missing is missing each time. */
const UNREADABLE_TRIES = 3;
/** Attempts at a read of rows that others write again and again. */
const PASSED_TRIES = 10;

/** What the work looked at beside the index is newer than the index was at its moment. */
export class MomentPassed extends Error {
  override readonly name = "MomentPassed";
}

/** A company's index as it stood at one instant after the read began. */
export interface IndexMoment {
  /** Names of this version, or of a newer one, belong to what is found. */
  readonly dictionaryVersion: number;
  /** Exact. */
  find(criteria: Criteria): Promise<Matches>;
}

export interface HowToLook {
  /** There will be words to look for: texts that only a search looks into are read at once where the last look saw some, and else one round later. */
  readonly searches?: boolean;
}

export interface CompanyIndex {
  /** Of memory that the segments kept from read to read take, as they are counted. */
  readonly cachedBytes: number;
  /**
   * Does the work at a moment, and again at a later one where its moment has passed meanwhile. `alongside` runs at the same time as
   * the look at the table that makes the moment. Throws IndexUnreadable and, after many moments, TableBusy.
   */
  at<Beside, Result>(
    companyId: number,
    alongside: () => Promise<Beside>,
    work: (moment: IndexMoment, beside: Beside) => Promise<Result>,
    how?: HowToLook,
  ): Promise<Result>;
}

const opened = new WeakMap<Table, CompanyIndex>();

/** One index per table of a warm function. */
export function companyIndex(table: Table): CompanyIndex {
  const known = opened.get(table) ?? openCompanyIndex(table);
  opened.set(table, known);
  return known;
}

const ownCacheBytes = (): number => cacheBytesOf(Number(process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE ?? USUAL_MB));

export function openCompanyIndex(table: Table, cacheBytes = ownCacheBytes()): CompanyIndex {
  /** In the order of their last use. */
  const cache = new Map<number, Snapshot>();

  /** Companies of which the last look saw texts beside entries: mostly there are none, and a look for them costs half a unit. */
  const withAside = new Set<number>();

  function cachedBytes(): number {
    let bytes = 0;
    for (const snapshot of cache.values()) bytes += snapshot.bytes;
    return bytes;
  }

  function remember(companyId: number, used: Snapshot): void {
    cache.delete(companyId);
    cache.set(companyId, used);
    const others = [...cache].slice(0, -1);
    let excess = cachedBytes() - cacheBytes;
    // Texts take three quarters of a company's memory, and lists and maps do without them: they go before any columns do.
    for (const [, snapshot] of others) if (excess > 0) excess -= snapshot.dropTexts();
    for (const [oldest, snapshot] of others) {
      if (excess <= 0) break;
      cache.delete(oldest);
      excess -= snapshot.bytes;
    }
  }

  async function snapshotOf(companyId: number, { head }: Unflushed, sheets: Sheets | undefined): Promise<Snapshot> {
    const cached = cache.get(companyId);
    if (cached?.holds(head.manifest) === true) return cached;
    const known = cached?.manifest.runs ?? [];
    const manifest = await readManifest(table, companyId, head.manifest, { sheets, known });
    return new Snapshot(companyId, manifest, cached);
  }

  const textsOf = (
    companyId: number,
    newest: Delta,
    runs: RunsInView,
    aside: ReadonlySet<string>,
    known: AsideTexts | undefined,
  ): Promise<Delta> =>
    withTexts(table, companyId, newest, runs, aside, known).catch((error: unknown) => {
      throw error instanceof TextsMissing ? new MomentPassed("entries are being flushed", { cause: error }) : error;
    });

  /** A read that knows nothing of the company asks for the head and all sheets at once. */
  async function moment(companyId: number, searches: boolean): Promise<IndexMoment> {
    const isCold = !cache.has(companyId);
    const [unflushed, sheets, texts] = await Promise.all([
      readUnflushed(table, companyId),
      isCold ? readSheets(table, companyId, "eventual") : undefined,
      searches && withAside.has(companyId) ? readAsideTexts(table, companyId) : undefined,
    ]);
    if (unflushed.aside.size > 0) withAside.add(companyId);
    else withAside.delete(companyId);
    const snapshot = await snapshotOf(companyId, unflushed, sheets);
    return {
      dictionaryVersion: unflushed.head.dictionaryVersion,
      find: async (criteria) => {
        const leave = snapshot.enter();
        try {
          await snapshot.load(table, criteria);
          remember(companyId, snapshot);
          const known = snapshot.known(criteria);
          const newest = newestUnflushed(known, unflushed.entries, unflushed.notes);
          const isSearch = criteria.words.length > 0;
          const delta = isSearch ? await textsOf(companyId, newest, known, unflushed.aside, texts) : newest;
          return findMatches(snapshot.view(criteria, delta), criteria);
        } finally {
          leave();
        }
      },
    };
  }

  return {
    get cachedBytes() {
      return cachedBytes();
    },
    at: async (companyId, alongside, work, { searches = false } = {}) => {
      for (let attempt = 1; ; attempt++) {
        try {
          const [found, beside] = await Promise.all([moment(companyId, searches), alongside()]);
          return await work(found, beside);
        } catch (error) {
          if (error instanceof MomentPassed) {
            if (attempt < PASSED_TRIES) continue;
            throw new TableBusy(`what company ${companyId} reads keeps changing`, { cause: error });
          }
          if (!(error instanceof IndexUnreadable) || attempt >= UNREADABLE_TRIES) throw error;
          cache.delete(companyId);
        }
      }
    },
  };
}
