/** Tests the cache of warm functions: its bytes are bounded, and an older version of a value never replaces a newer one. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cachePerTable, VersionedCache } from "#shared/cache.ts";

const sizes = { maxBytes: 100, bytesOf: ({ bytes }: { bytes: number }) => bytes };

describe("a cache", () => {
  test("never exceeds its bytes, never replaces a newer version, and always holds the value that was added last", () => {
    const Step = fc.record({ key: fc.nat(5), version: fc.nat(4), bytes: fc.integer({ min: 1, max: 120 }) });
    fc.assert(
      fc.property(fc.array(Step), (steps) => {
        const cache = new VersionedCache(sizes);
        for (const { key, version, bytes } of steps) {
          const before = cache.get(key)?.version ?? 0;
          cache.set(key, version, { bytes });
          expect(cache.get(key)?.version).toBe(Math.max(before, version));
          expect(cache.bytes).toBeLessThanOrEqual(100);
        }
      }),
    );
  });

  test("evicts the values that were used least recently", () => {
    const cache = new VersionedCache(sizes);
    for (const key of [1, 2, 3, 4]) cache.set(key, 1, { bytes: 25 });
    cache.get(1);
    cache.set(5, 1, { bytes: 50 });
    expect([1, 2, 3, 4, 5].filter((key) => cache.get(key) !== undefined)).toEqual([1, 4, 5]);
    cache.delete(4);
    expect([cache.get(4), cache.bytes]).toEqual([undefined, 75]);
  });

  test("measures values that have grown again, and reduces the least recently used values before it evicts one", () => {
    const reduce = (value: { bytes: number }): number => {
      const freed = value.bytes - 10;
      value.bytes = 10;
      return freed;
    };
    const values = [1, 2, 3].map(() => ({ bytes: 20 }));
    const [first, second, third] = values;
    const cache = new VersionedCache({ ...sizes, grows: true, reduce });
    for (const [i, value] of values.entries()) cache.set(i, 1, value);
    for (const value of values) value.bytes = 40;
    cache.set(3, 1, { bytes: 25 });
    expect([first, second, third]).toEqual([{ bytes: 10 }, { bytes: 10 }, { bytes: 40 }]);
    expect(cache.bytes).toBe(85);
    cache.set(4, 1, { bytes: 75 });
    expect([0, 1, 2, 3, 4].filter((key) => cache.get(key) !== undefined)).toEqual([2, 3, 4]);
    expect(cache.bytes).toBe(95);
  });

  test("of one table shares no value with the cache of another table", () => {
    const caches = cachePerTable(sizes);
    const [one, other] = [{}, {}];
    caches(one).set(1, 1, { bytes: 1 });
    expect([caches(one).get(1)?.version, caches(other).get(1)]).toEqual([1, undefined]);
  });
});
