/** Reads a company index. Each read begins with the unflushed entries and the head. Segments stay in memory for later reads. */
import { VersionedCache } from "#shared/cache.ts";
import { type Criteria, needsText } from "#shared/company-index/criteria.ts";
import { readLongTexts, readUnflushed, type Unflushed, withTexts } from "#shared/company-index/delta.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Head, type PartManifests, readManifest, readPartManifests } from "#shared/company-index/manifest.ts";
import { LoadedIndex } from "#shared/company-index/read/loaded-index.ts";
import type { LiveNotes, NotesOf } from "#shared/company-index/search/live-notes.ts";
import { findMatches, type Matches } from "#shared/company-index/search/match.ts";
import { newestUnflushed } from "#shared/company-index/versions.ts";
import type { Reads } from "#shared/db/reads.ts";
import { TableBusy } from "#shared/errors.ts";

/** The assumed memory in MB of a process that is no Lambda function. */
const USUAL_MB = 1_024;

/** Maximum attempts if data is unreadable: a missing item may belong to a part that was replaced during the read. */
const UNREADABLE_TRIES = 3;
/** Maximum number of stale reads of one `find`. During a search, a flush may delete texts that the search still needs. */
const SNAPSHOT_TRIES = 10;

/** Data that the read needs was deleted meanwhile, so the caller must read the current state of the index. */
export interface StaleSnapshot {
  readonly staleBecause: string;
}

export const isStale = (result: object): result is StaleSnapshot => "staleBecause" in result;

export interface FindOptions {
  /** True if the caller will search for words or source ids. Long texts may then be read at the same time as the index. */
  readonly searches?: boolean;
  /** Finds the notes of the matches. The caller passes this function, so that the bundles of other callers do not contain its code. */
  readonly notesOf?: NotesOf | undefined;
  /** The unflushed entries and the head, if the caller has already read them. The result then has the state of that moment. */
  readonly unflushed?: Unflushed | undefined;
}

/** The names of statuses, tags and users. `recent` may return cached names. `fresh` reads them from the table. */
export interface NamesSource<Names extends { readonly version: number }> {
  readonly recent: () => Promise<Names>;
  readonly fresh: () => Promise<Names>;
}

/** The state of the index at one moment, which is not earlier than the beginning of the read. */
export interface Found<Names> {
  readonly head: Head;
  /** The names are at least as new as `dictionaryVersion` of the head. */
  readonly names: Names;
  readonly criteria: Criteria;
  readonly matches: Matches;
  readonly notes: LiveNotes | undefined;
}

/** Adds a placeholder word, so that `load` also loads the text columns. These contain the ids of the notes. */
const withTextsOf = (criteria: Criteria): Criteria => ({ ...criteria, words: [{ text: "-", digits: [] }] });

/** Makes the criteria of a read. The polygon of a territory must be at least as new as `territoriesVersion` of the head. */
export type CriteriaOf<Names> = (names: Names, head: Head) => Criteria | Promise<Criteria>;

export interface CompanyIndex {
  readonly cachedBytes: number;
  /** Reads index and names concurrently, and repeats stale reads. Throws IndexUnreadable, or TableBusy after too many stale reads. */
  find<Names extends { readonly version: number }>(
    companyId: number,
    source: NamesSource<Names>,
    criteriaOf: CriteriaOf<Names>,
    options?: FindOptions,
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
  // A full cache first drops texts, because they use three quarters of the memory and only searches need them.
  const cache = new VersionedCache<LoadedIndex>({
    maxBytes: cacheBytes,
    bytesOf: ({ bytes }) => bytes,
    grows: true,
    reduce: (loaded) => loaded.dropTexts(),
  });

  /** Companies that had unflushed long texts at their last read. Their searches read the long texts at the same time as the index. */
  const haveLongTexts = new Set<number>();

  async function snapshotOf(
    companyId: number,
    { head }: Unflushed,
    partManifests: PartManifests | undefined,
  ): Promise<LoadedIndex> {
    const cached = cache.get(companyId)?.value;
    if (cached?.consistsOf(head.manifest) === true) return cached;
    const known = cached?.manifest.parts ?? [];
    const manifest = await readManifest(table, companyId, head.manifest, { partManifests, known });
    return new LoadedIndex(companyId, manifest, cached);
  }

  /** If no version of the index is in memory, reads all part manifests at the same time as the head. */
  async function findOnce<Names extends { readonly version: number }>(
    companyId: number,
    source: NamesSource<Names>,
    criteriaOf: CriteriaOf<Names>,
    { searches = false, notesOf, unflushed: given }: FindOptions,
  ): Promise<Found<Names> | StaleSnapshot> {
    const isCold = cache.get(companyId) === undefined;
    const [recent, unflushed, partManifests, texts] = await Promise.all([
      source.recent(),
      given ?? readUnflushed(table, companyId),
      isCold ? readPartManifests(table, companyId, "eventual") : undefined,
      searches && haveLongTexts.has(companyId) ? readLongTexts(table, companyId) : undefined,
    ]);
    const { head } = unflushed;
    if (unflushed.withLongText.size > 0) haveLongTexts.add(companyId);
    else haveLongTexts.delete(companyId);
    const loaded = await snapshotOf(companyId, unflushed, partManifests);
    const names = recent.version < head.dictionaryVersion ? await source.fresh() : recent;
    const criteria = await criteriaOf(names, head);
    const endRead = loaded.beginRead();
    try {
      await loaded.load(table, notesOf === undefined ? criteria : withTextsOf(criteria));
      cache.set(companyId, head.version, loaded);
      const { known } = loaded;
      let delta = newestUnflushed(known, unflushed.entries, unflushed.notes);
      if (needsText(criteria)) {
        const filled = await withTexts(table, companyId, delta, known, { ...unflushed, texts });
        if (filled.missing > 0) return { staleBecause: `${filled.missing} unflushed texts are gone` };
        ({ delta } = filled);
      }
      const view = loaded.view(delta);
      const matches = findMatches(view, criteria);
      return { head, names, criteria, matches, notes: notesOf?.(view, matches) };
    } finally {
      endRead();
    }
  }

  return {
    get cachedBytes() {
      return cache.bytes;
    },
    find: async (companyId, source, criteriaOf, options = {}) => {
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
/** Memory for Node.js, for the code, and for one read of a company with a million prospects. */
const RESERVED_MB = 460;
/** The share of the memory beyond `RESERVED_MB` for the cache. The rest is for fragmentation and for garbage that is not collected yet. */
const SHARE = 0.85;
/** Minimum size of the cache: the index of 100 000 prospects with texts. With a smaller cache, each search would load all texts again. */
const LEAST_BYTES = 20 * MB;

export const cacheBytesOf = (memoryMb: number): number =>
  Math.max(LEAST_BYTES, Math.floor((memoryMb - RESERVED_MB) * MB * SHARE));
