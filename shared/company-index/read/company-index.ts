/** Reads of the company index. Each read takes one strongly consistent Query, and segments stay in memory between reads. */

import type { Criteria } from "#shared/company-index/criteria.ts";
import { readLongTexts, readUnflushed, type Unflushed, withTexts } from "#shared/company-index/delta.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type RunManifests, readManifest, readRunManifests } from "#shared/company-index/manifest.ts";
import { LoadedIndex } from "#shared/company-index/read/loaded-index.ts";
import { findMatches, type Matches } from "#shared/company-index/search/match.ts";
import { newestUnflushed } from "#shared/company-index/versions.ts";
import type { Table } from "#shared/db/table.ts";
import { TableBusy } from "#shared/errors.ts";

/** Assumed memory of a process that is not a Lambda function, in MB. */
const USUAL_MB = 1_024;

/**
 * Number of times that an index with a missing or damaged piece is read. The piece may belong to a run that was replaced meanwhile, and a
 * later read then uses the new run.
 */
const UNREADABLE_TRIES = 3;
/** Most snapshots that one `find` takes while flushes keep removing texts that the search needs. */
const SNAPSHOT_TRIES = 10;

/** The rows or texts that a snapshot refers to have changed, so the reader must take a later snapshot. */
export interface StaleSnapshot {
  readonly staleBecause: string;
}

export const isStale = (result: object): result is StaleSnapshot => "staleBecause" in result;

/** A company's index as it was at one instant after the beginning of the read. */
export interface IndexSnapshot {
  /** The names for the matches must have this dictionary version or a later one. */
  readonly dictionaryVersion: number;
  /** Returns exactly the rows that pass. Throws IndexUnreadable. */
  find(criteria: Criteria): Promise<Matches | StaleSnapshot>;
}

export interface SnapshotOptions {
  /**
   * Whether the criteria will contain words. The long texts of unflushed entries are then read in the same round trip if the last snapshot
   * had long texts, and otherwise in a second round trip.
   */
  readonly searches?: boolean;
}

/** The names of statuses, tags and users. `recent` prefers the names in memory, `fresh` reads the names from the table. */
export interface NamesSource<Names extends { readonly version: number }> {
  readonly recent: () => Promise<Names>;
  readonly fresh: () => Promise<Names>;
}

export interface Found<Names> {
  /** The names have the dictionary version of the snapshot or a later one. */
  readonly names: Names;
  readonly criteria: Criteria;
  readonly matches: Matches;
}

export interface CompanyIndex {
  /** Estimated memory of the cached segments, in bytes. */
  readonly cachedBytes: number;
  /** Takes a snapshot of the company's index. Throws IndexUnreadable. */
  snapshot(companyId: number, options?: SnapshotOptions): Promise<IndexSnapshot>;
  /**
   * Reads the recent names and the index at the same time, and takes snapshots until one is not stale. Throws IndexUnreadable, and
   * TableBusy after too many stale snapshots.
   */
  find<Names extends { readonly version: number }>(
    companyId: number,
    source: NamesSource<Names>,
    criteriaOf: (names: Names) => Criteria,
    options?: SnapshotOptions,
  ): Promise<Found<Names>>;
}

const opened = new WeakMap<Table, CompanyIndex>();

/** Returns the one index of the table, which all invocations of a warm function share. */
export function companyIndex(table: Table): CompanyIndex {
  const known = opened.get(table) ?? openCompanyIndex(table);
  opened.set(table, known);
  return known;
}

const ownCacheBytes = (): number => cacheBytesOf(Number(process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE ?? USUAL_MB));

export function openCompanyIndex(table: Table, cacheBytes = ownCacheBytes()): CompanyIndex {
  /** Loaded indexes by company, least recently used first. */
  const cache = new Map<number, LoadedIndex>();

  /**
   * Companies whose last snapshot had long texts. Most companies have none, and a Query for long texts costs half a read unit even if it
   * finds none.
   */
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
    // Drop texts before any other columns: texts take three quarters of a company's memory, and lists and maps do not need them.
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
    if (cached?.consistsOf(head.manifest) === true) return cached;
    const known = cached?.manifest.runs ?? [];
    const manifest = await readManifest(table, companyId, head.manifest, { runManifests, known });
    return new LoadedIndex(companyId, manifest, cached);
  }

  /** Without an index in memory, reads the head and all run manifests in the same round trip. */
  async function snapshot(companyId: number, { searches = false }: SnapshotOptions = {}): Promise<IndexSnapshot> {
    const isCold = !cache.has(companyId);
    const [unflushed, runManifests, texts] = await Promise.all([
      readUnflushed(table, companyId),
      isCold ? readRunManifests(table, companyId, "eventual") : undefined,
      searches && haveLongTexts.has(companyId) ? readLongTexts(table, companyId) : undefined,
    ]);
    if (unflushed.withLongText.size > 0) haveLongTexts.add(companyId);
    else haveLongTexts.delete(companyId);
    const loaded = await snapshotOf(companyId, unflushed, runManifests);
    return {
      dictionaryVersion: unflushed.head.dictionaryVersion,
      find: async (criteria) => {
        const endRead = loaded.beginRead();
        try {
          await loaded.load(table, criteria);
          remember(companyId, loaded);
          const known = loaded.known(criteria);
          let delta = newestUnflushed(known, unflushed.entries, unflushed.notes);
          if (criteria.words.length > 0) {
            const filled = await withTexts(table, companyId, delta, known, unflushed.withLongText, texts);
            if (filled.missing > 0) return { staleBecause: `${filled.missing} unflushed texts are gone` };
            ({ delta } = filled);
          }
          return findMatches(loaded.view(criteria, delta), criteria);
        } finally {
          endRead();
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
/** Memory of Node.js, of the code of a function, and of one running read of a company with a million prospects, in MB. */
const RESERVED_MB = 460;
/** The share of the memory that the cache may fill. The rest is lost to fragmentation and to garbage that is not yet collected. */
const SHARE = 0.85;
/** Memory of a company of 100 000 prospects with its texts. With a smaller cache, each search would load all texts again. */
const LEAST_BYTES = 20 * MB;

/** Returns the size of the cache in bytes. `memoryMb` is the memory of the function, from `AWS_LAMBDA_FUNCTION_MEMORY_SIZE`. */
export const cacheBytesOf = (memoryMb: number): number =>
  Math.max(LEAST_BYTES, Math.floor((memoryMb - RESERVED_MB) * MB * SHARE));
