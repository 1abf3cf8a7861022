/** Reads of the company index: one strongly consistent Query, with the segments kept in memory from read to read. */

import type { Criteria } from "#shared/company-index/criteria.ts";
import { readLongTexts, readUnflushed, type Unflushed, withTexts } from "#shared/company-index/delta.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type RunManifests, readManifest, readRunManifests } from "#shared/company-index/manifest.ts";
import { LoadedIndex } from "#shared/company-index/read/loaded-index.ts";
import { findMatches, type Matches } from "#shared/company-index/search/match.ts";
import { newestUnflushed } from "#shared/company-index/versions.ts";
import type { Table } from "#shared/db/table.ts";
import { TableBusy } from "#shared/errors.ts";

/** The memory that functions have unless it is set otherwise: for processes that are no functions. */
const USUAL_MB = 1_024;

/** Reads of an index with a missing or damaged piece: a merge may have replaced the piece. A piece that is really missing stays missing. */
const UNREADABLE_TRIES = 3;
/** Snapshots that one `find` takes while flushes take the texts of its entries away. */
const SNAPSHOT_TRIES = 10;

/** The snapshot has outlived the rows or texts that it refers to: take a later one. */
export interface StaleSnapshot {
  readonly staleBecause: string;
}

export const isStale = (result: object): result is StaleSnapshot => "staleBecause" in result;

/** A company's index as it was at one instant after its read began. */
export interface IndexSnapshot {
  /** Names of this version, or of a later one, belong to the matches. */
  readonly dictionaryVersion: number;
  /** Exact. Throws IndexUnreadable. */
  find(criteria: Criteria): Promise<Matches | StaleSnapshot>;
}

export interface SnapshotOptions {
  /** The criteria will hold words. Long texts of unflushed entries then come in the same round if the last snapshot had any, else in one more. */
  readonly searches?: boolean;
}

/** A reader's names of statuses, tags and users: those in memory, and those in the table. */
export interface NamesSource<Names extends { readonly version: number }> {
  readonly recent: () => Promise<Names>;
  readonly fresh: () => Promise<Names>;
}

export interface Found<Names> {
  /** As current as the matches. */
  readonly names: Names;
  readonly criteria: Criteria;
  readonly matches: Matches;
}

export interface CompanyIndex {
  /** Memory that the cached segments take, as the cache counts it. */
  readonly cachedBytes: number;
  /** Throws IndexUnreadable. */
  snapshot(companyId: number, options?: SnapshotOptions): Promise<IndexSnapshot>;
  /**
   * Takes snapshots until one is not stale. Recent names are read at the same time as the index. Throws IndexUnreadable and, after
   * many stale snapshots, TableBusy.
   */
  find<Names extends { readonly version: number }>(
    companyId: number,
    source: NamesSource<Names>,
    criteriaOf: (names: Names) => Criteria,
    options?: SnapshotOptions,
  ): Promise<Found<Names>>;
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
  const cache = new Map<number, LoadedIndex>();

  /** Companies of which the last look saw texts beside entries: mostly there are none, and a look for them costs half a unit. */
  const haveLongTexts = new Set<number>();

  function cachedBytes(): number {
    let bytes = 0;
    for (const snapshot of cache.values()) bytes += snapshot.bytes;
    return bytes;
  }

  function remember(companyId: number, used: LoadedIndex): void {
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

  async function snapshotOf(
    companyId: number,
    { head }: Unflushed,
    runManifests: RunManifests | undefined,
  ): Promise<LoadedIndex> {
    const cached = cache.get(companyId);
    if (cached?.holds(head.manifest) === true) return cached;
    const known = cached?.manifest.runs ?? [];
    const manifest = await readManifest(table, companyId, head.manifest, { runManifests, known });
    return new LoadedIndex(companyId, manifest, cached);
  }

  /** A read that knows nothing of the company asks for the head and all run manifests at once. */
  async function snapshot(companyId: number, { searches = false }: SnapshotOptions = {}): Promise<IndexSnapshot> {
    const isCold = !cache.has(companyId);
    const [unflushed, runManifests, texts] = await Promise.all([
      readUnflushed(table, companyId),
      isCold ? readRunManifests(table, companyId, "eventual") : undefined,
      searches && haveLongTexts.has(companyId) ? readLongTexts(table, companyId) : undefined,
    ]);
    if (unflushed.aside.size > 0) haveLongTexts.add(companyId);
    else haveLongTexts.delete(companyId);
    const loaded = await snapshotOf(companyId, unflushed, runManifests);
    return {
      dictionaryVersion: unflushed.head.dictionaryVersion,
      find: async (criteria) => {
        const leave = loaded.enter();
        try {
          await loaded.load(table, criteria);
          remember(companyId, loaded);
          const known = loaded.known(criteria);
          let delta = newestUnflushed(known, unflushed.entries, unflushed.notes);
          if (criteria.words.length > 0) {
            const filled = await withTexts(table, companyId, delta, known, unflushed.aside, texts);
            if (filled.missing > 0) return { staleBecause: `${filled.missing} unflushed texts are gone` };
            ({ delta } = filled);
          }
          return findMatches(loaded.view(criteria, delta), criteria);
        } finally {
          leave();
        }
      },
    };
  }

  async function findOnce<Names extends { readonly version: number }>(
    companyId: number,
    source: NamesSource<Names>,
    criteriaOf: (names: Names) => Criteria,
    options: SnapshotOptions | undefined,
  ): Promise<Found<Names> | StaleSnapshot> {
    const [{ dictionaryVersion, find }, recent] = await Promise.all([snapshot(companyId, options), source.recent()]);
    const names = recent.version < dictionaryVersion ? await source.fresh() : recent;
    const criteria = criteriaOf(names);
    const matches = await find(criteria);
    return isStale(matches) ? matches : { names, criteria, matches };
  }

  return {
    get cachedBytes() {
      return cachedBytes();
    },
    snapshot,
    find: async (companyId, source, criteriaOf, options) => {
      for (let attempt = 1; ; attempt++) {
        try {
          const found = await findOnce(companyId, source, criteriaOf, options);
          if (!isStale(found)) return found;
          if (attempt >= SNAPSHOT_TRIES)
            throw new TableBusy(`the index of company ${companyId} keeps changing: ${found.staleBecause}`);
        } catch (error) {
          if (!(error instanceof IndexUnreadable) || attempt >= UNREADABLE_TRIES) throw error;
          cache.delete(companyId);
        }
      }
    },
  };
}

const MB = 2 ** 20;
/** Node.js with the code of a function, and what a read of a company with a million prospects needs while it is under way. */
const RESERVED_MB = 460;
/** The rest is lost between allocations, or not collected yet. */
const SHARE = 0.85;
/** A company of 100 000 with its texts, even where memory is short: with less, each search would read all of them anew. */
const LEAST_BYTES = 20 * MB;

/** `memoryMb`: of the function, as Lambda says in `AWS_LAMBDA_FUNCTION_MEMORY_SIZE`. */
export const cacheBytesOf = (memoryMb: number): number =>
  Math.max(LEAST_BYTES, Math.floor((memoryMb - RESERVED_MB) * MB * SHARE));
