/**
 * Reads a company's search index. Each read begins with one strongly consistent Query for the unflushed entries (recent changes) and the
 * head row, which lists the runs (sorted batches of rows). The manifest of each run lists the run's segments. Segments stay in memory for
 * later reads.
 */

import type { Criteria } from "#shared/company-index/criteria.ts";
import { readLongTexts, readUnflushed, type Unflushed, withTexts } from "#shared/company-index/delta.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Head, type RunManifests, readManifest, readRunManifests } from "#shared/company-index/manifest.ts";
import { LoadedIndex } from "#shared/company-index/read/loaded-index.ts";
import type { LiveNotes, NotesOf } from "#shared/company-index/search/live-notes.ts";
import { findMatches, type Matches } from "#shared/company-index/search/match.ts";
import { newestUnflushed } from "#shared/company-index/versions.ts";
import type { Reads } from "#shared/db/reads.ts";
import { TableBusy } from "#shared/errors.ts";

/** Memory in MB that is assumed if the process is not a Lambda function. */
const USUAL_MB = 1_024;

/**
 * Maximum number of attempts if a part of the index is missing or damaged. The part may belong to a run (batch of rows) that was replaced
 * during the read. The next attempt then reads the run that has replaced it.
 */
const UNREADABLE_TRIES = 3;
/**
 * Maximum number of snapshots (states of the index) that one `find` reads. During a search, a flush may delete texts that the search still
 * needs. The search then reads a newer snapshot.
 */
const SNAPSHOT_TRIES = 10;

/** Rows or texts of the snapshot have changed during the read, so the caller must read a newer snapshot. `staleBecause` is the reason. */
export interface StaleSnapshot {
  readonly staleBecause: string;
}

export const isStale = (result: object): result is StaleSnapshot => "staleBecause" in result;

/** A consistent view of a company's index: its state at one moment, which is not earlier than the beginning of the read. */
export interface IndexSnapshot {
  /** The head row. A reader must use names of statuses, tags and users that are at least as new as its `dictionaryVersion`. */
  readonly head: Head;
  /**
   * Returns exactly the matching rows. Returns StaleSnapshot if data of the snapshot was replaced or deleted before it could be read.
   * Throws IndexUnreadable if a part of the index is missing or damaged.
   */
  find(criteria: Criteria): Promise<Hits | StaleSnapshot>;
}

export interface SnapshotOptions {
  /**
   * True if the caller will search for words. The search needs long texts, which are stored apart from the entries of the index. If the
   * last snapshot of this company had long texts, they are read at the same time as the index. This saves a round trip.
   */
  readonly searches?: boolean;
  /**
   * Finds the notes of the matches. Pass `liveNotes` if the caller needs them. It is a parameter, so that Lambda functions that do not need
   * it do not bundle its code.
   */
  readonly notesOf?: NotesOf | undefined;
}

/** The names of statuses, tags and users. `recent` may return cached names. `fresh` reads them from the table. */
export interface NamesSource<Names extends { readonly version: number }> {
  readonly recent: () => Promise<Names>;
  readonly fresh: () => Promise<Names>;
}

interface Hits {
  readonly matches: Matches;
  /** The notes of the matches. Undefined if the options of the snapshot contain no `notesOf`. */
  readonly notes: LiveNotes | undefined;
}

export interface Found<Names> extends Hits {
  readonly head: Head;
  readonly names: Names;
  readonly criteria: Criteria;
}

/**
 * Returns the criteria with one placeholder word, so that the index loads the text columns even if the criteria contain no word. A read
 * that returns notes needs these columns, because they contain the ids of the notes.
 */
const withTextsOf = (criteria: Criteria): Criteria => ({ ...criteria, words: [{ text: "-", digits: "" }] });

/**
 * Makes the criteria of a read. If they contain the polygon of a territory, the polygon must include all changes that the head row counts
 * in `polygonsVersion`.
 */
export type CriteriaOf<Names> = (names: Names, head: Head) => Criteria | Promise<Criteria>;

export interface CompanyIndex {
  readonly cachedBytes: number;
  /** Reads the current state of a company's index. Throws IndexUnreadable. */
  snapshot(companyId: number, options?: SnapshotOptions): Promise<IndexSnapshot>;
  /**
   * Reads the index and, at the same time, the names of statuses, tags and users. Repeats the whole read if the snapshot is stale. Throws
   * IndexUnreadable. Throws TableBusy if too many successive snapshots are stale.
   */
  find<Names extends { readonly version: number }>(
    companyId: number,
    source: NamesSource<Names>,
    criteriaOf: CriteriaOf<Names>,
    options?: SnapshotOptions,
  ): Promise<Found<Names>>;
}

const opened = new WeakMap<Reads, CompanyIndex>();

export function companyIndex(table: Reads): CompanyIndex {
  const known = opened.get(table) ?? openCompanyIndex(table);
  opened.set(table, known);
  return known;
}

const ownCacheBytes = (): number => cacheBytesOf(Number(process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE ?? USUAL_MB));

export function openCompanyIndex(table: Reads, cacheBytes = ownCacheBytes()): CompanyIndex {
  const cache = new Map<number, LoadedIndex>();

  /**
   * Ids of the companies whose last snapshot had long texts, which are stored apart from the other recent changes. For other companies, the
   * long texts are not read at the same time as the index, because a Query costs half a read unit even if it finds nothing.
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
    // The texts of other companies are dropped first, because texts use three quarters of the memory and only searches need them.
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

  /**
   * Reads the head row and the unflushed entries (recent changes). If the function has no version of the company's index in memory, it
   * reads all run manifests (the lists of the index's segments) at the same time, to save a round trip.
   */
  async function snapshot(
    companyId: number,
    { searches = false, notesOf }: SnapshotOptions = {},
  ): Promise<IndexSnapshot> {
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
      head: unflushed.head,
      find: async (criteria) => {
        const endRead = loaded.beginRead();
        try {
          const loads = notesOf === undefined ? criteria : withTextsOf(criteria);
          await loaded.load(table, loads);
          remember(companyId, loaded);
          const known = loaded.known(loads);
          let delta = newestUnflushed(known, unflushed.entries, unflushed.notes);
          if (criteria.words.length > 0) {
            const filled = await withTexts(table, companyId, delta, known, unflushed.withLongText, texts);
            if (filled.missing > 0) return { staleBecause: `${filled.missing} unflushed texts are gone` };
            ({ delta } = filled);
          }
          const view = loaded.view(loads, delta);
          const matches = findMatches(view, criteria);
          return { matches, notes: notesOf?.(view, matches) };
        } finally {
          endRead();
        }
      },
    };
  }

  async function findOnce<Names extends { readonly version: number }>(
    companyId: number,
    source: NamesSource<Names>,
    criteriaOf: CriteriaOf<Names>,
    options: SnapshotOptions | undefined,
  ): Promise<Found<Names> | StaleSnapshot> {
    const [{ head, find }, recent] = await Promise.all([snapshot(companyId, options), source.recent()]);
    const names = recent.version < head.dictionaryVersion ? await source.fresh() : recent;
    const criteria = await criteriaOf(names, head);
    const hits = await find(criteria);
    return isStale(hits) ? hits : { head, names, criteria, ...hits };
  }

  return {
    get cachedBytes() {
      return cachedBytes();
    },
    snapshot,
    find: async (companyId, source, criteriaOf, options) => {
      let [stale, unreadable] = [0, 0];
      for (;;) {
        try {
          const found = await findOnce(companyId, source, criteriaOf, options);
          if (!isStale(found)) return found;
          if (++stale >= SNAPSHOT_TRIES)
            throw new TableBusy(`the index of company ${companyId} keeps changing: ${found.staleBecause}`);
        } catch (error) {
          if (!(error instanceof IndexUnreadable) || ++unreadable >= UNREADABLE_TRIES) throw error;
          cache.delete(companyId);
        }
      }
    },
  };
}

const MB = 2 ** 20;
/** Memory in MB that the cache must leave free for Node.js, for the code, and for one read of a company with a million prospects. */
const RESERVED_MB = 460;
/**
 * Share of the remaining memory that the cache may use. The rest is a reserve for fragmentation and for garbage that is not collected yet.
 */
const SHARE = 0.85;
/**
 * Minimum bytes of the cache. The index of a company with 100 000 prospects and its texts needs this much memory. With a smaller cache,
 * each search would load all texts again.
 */
const LEAST_BYTES = 20 * MB;

/** Returns the maximum bytes of the cache. `memoryMb` is the memory of the function (`AWS_LAMBDA_FUNCTION_MEMORY_SIZE`). */
export const cacheBytesOf = (memoryMb: number): number =>
  Math.max(LEAST_BYTES, Math.floor((memoryMb - RESERVED_MB) * MB * SHARE));
