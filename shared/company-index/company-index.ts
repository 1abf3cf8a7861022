/** Reads of the company index: one strongly consistent Query, with the segments kept in memory from read to read. */
import { IndexUnreadable } from "#shared/company-index/compress.ts";
import type { Criteria } from "#shared/company-index/criteria.ts";
import { readUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import { findMatches, type Matches } from "#shared/company-index/match.ts";
import { Snapshot } from "#shared/company-index/snapshot.ts";
import { newestManifest, readManifest } from "#shared/company-index/store.ts";
import type { Table } from "#shared/db/table.ts";

/** A million prospects with their texts take about 300 MB. */
const CACHE_BYTES = 400_000_000;

/** Attempts at a read whose segments were merged away meanwhile. */
const TRIES = 3;

export interface CompanyIndex {
  /** Exact, and no older than the moment of the call. Throws IndexUnreadable. */
  find(companyId: number, criteria: Criteria): Promise<Matches>;
}

interface Cached {
  readonly manifestId: string;
  readonly snapshot: Snapshot;
}

export function openCompanyIndex(table: Table, cacheBytes = CACHE_BYTES): CompanyIndex {
  /** In the order of their last use. */
  const cache = new Map<number, Cached>();

  function remember(companyId: number, cached: Cached): void {
    cache.delete(companyId);
    cache.set(companyId, cached);
    let bytes = 0;
    for (const { snapshot } of cache.values()) bytes += snapshot.bytes;
    for (const [oldest, { snapshot }] of cache) {
      if (bytes <= cacheBytes || oldest === companyId) break;
      cache.delete(oldest);
      bytes -= snapshot.bytes;
    }
  }

  async function snapshotOf(companyId: number, { head }: Unflushed, newest: Cached | undefined): Promise<Cached> {
    const manifestId = head.manifest?.id ?? "";
    const cached = cache.get(companyId) ?? newest;
    if (cached?.manifestId === manifestId) return cached;
    const manifest = await readManifest(table, companyId, head.manifest);
    return { manifestId, snapshot: new Snapshot(companyId, manifest, cached?.snapshot) };
  }

  /** A read that knows nothing of the company asks for the head and the newest manifest at once. */
  async function current(companyId: number): Promise<{ unflushed: Unflushed; cached: Cached }> {
    const isCold = !cache.has(companyId);
    const [unflushed, newest] = await Promise.all([
      readUnflushed(table, companyId),
      isCold ? newestManifest(table, companyId) : null,
    ]);
    const guess =
      newest === null
        ? undefined
        : { manifestId: newest.id, snapshot: new Snapshot(companyId, newest.manifest, undefined) };
    return { unflushed, cached: await snapshotOf(companyId, unflushed, guess) };
  }

  async function find(companyId: number, criteria: Criteria): Promise<Matches> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { unflushed, cached } = await current(companyId);
        await cached.snapshot.load(table, criteria);
        remember(companyId, cached);
        return findMatches(cached.snapshot.view(criteria, unflushed.entries, unflushed.notes), criteria);
      } catch (error) {
        // What a slow read began with may be gone; what is really missing is missing again.
        if (!(error instanceof IndexUnreadable) || attempt === TRIES) throw error;
        cache.delete(companyId);
      }
    }
  }

  return { find };
}
