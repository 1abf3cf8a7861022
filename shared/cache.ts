/** Caches of warm functions. A cache holds data of many companies, up to a number of bytes, and the version of each entry. */
import { LRUCache } from "lru-cache";

export interface CacheRules<Value> {
  readonly maxBytes: number;
  /** Approximate bytes in memory. */
  readonly bytesOf: (value: Value) => number;
  /** True if values grow while they are used. Each new value then makes the cache measure all others again. */
  readonly grows?: boolean;
  /** Frees the parts of a value that can be read again, and returns their bytes. A full cache that `grows` first does this, then evicts. */
  readonly reduce?: (value: Value) => number;
}

interface Entry<Value> {
  /** Newer data has a higher number. */
  readonly version: number;
  readonly value: Value;
}

export class VersionedCache<Value> {
  readonly #rules: CacheRules<Value>;
  readonly #entries: LRUCache<number | string, Entry<Value>>;

  constructor(rules: CacheRules<Value>) {
    this.#rules = rules;
    const maxSize = Math.max(1, Math.floor(rules.maxBytes));
    // A value larger than the cache counts as `maxSize`, because LRUCache rejects a larger size. Such a value evicts all others.
    const sizeCalculation = ({ value }: Entry<Value>): number =>
      Math.max(1, Math.min(maxSize, Math.ceil(rules.bytesOf(value))));
    this.#entries = new LRUCache({ maxSize, sizeCalculation });
  }

  get bytes(): number {
    if (this.#rules.grows !== true) return this.#entries.calculatedSize;
    return this.#oldestFirst().reduce((sum, [, { value }]) => sum + this.#rules.bytesOf(value), 0);
  }

  get(key: number | string): Entry<Value> | undefined {
    return this.#entries.get(key);
  }

  /** Does nothing if the cache has a newer version: a slow read of old data may end after a read of newer data. */
  set(key: number | string, version: number, value: Value): void {
    const known = this.#entries.peek(key);
    if (known !== undefined && known.version > version) return;
    this.#entries.delete(key);
    if (this.#rules.grows === true) this.#measureAgain(this.#rules.bytesOf(value));
    this.#entries.set(key, { version, value });
  }

  delete(key: number | string): void {
    this.#entries.delete(key);
  }

  #measureAgain(newBytes: number): void {
    const { maxBytes, reduce } = this.#rules;
    let excess = this.bytes + newBytes - maxBytes;
    if (excess <= 0) return;
    const entries = this.#oldestFirst();
    if (reduce !== undefined) for (const [, { value }] of entries) if (excess > 0) excess -= reduce(value);
    this.#entries.clear();
    for (const [key, entry] of entries) this.#entries.set(key, entry);
  }

  #oldestFirst(): [key: number | string, entry: Entry<Value>][] {
    const entries: [number | string, Entry<Value>][] = [];
    this.#entries.rforEach((entry, key) => entries.push([key, entry]));
    return entries;
  }
}

/** Returns the cache of a table. One process may use several tables in tests. */
export function cachePerTable<Value>(rules: CacheRules<Value>): (table: object) => VersionedCache<Value> {
  const caches = new WeakMap<object, VersionedCache<Value>>();
  return (table) => {
    const cache = caches.get(table) ?? new VersionedCache(rules);
    caches.set(table, cache);
    return cache;
  };
}
