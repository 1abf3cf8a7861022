/**
 * Tests the throttle keys, the API keys under which API Gateway counts the requests of companies. The companies must be distributed evenly
 * over these keys, and each key must have the form that API Gateway accepts.
 */
import { expect, test } from "vitest";
import { REFUSED, THROTTLE_KEYS, throttleKey, throttleSlot } from "#shared/auth/throttle-key.ts";

/**
 * Typical company ids. A company that a command creates gets the first id of a block of 128 ids, so company ids are often multiples of 128.
 */
const ids = Array.from({ length: 3_200 }, (_, i) => (i + 1) * 128);

test("companies are spread evenly over all keys, and none has the key of refused tokens", () => {
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(throttleSlot(id), (counts.get(throttleSlot(id)) ?? 0) + 1);
  expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual(Array.from({ length: THROTTLE_KEYS }, (_, i) => i + 1));
  expect(counts.has(REFUSED)).toBe(false);
  for (const count of counts.values()) {
    expect(count).toBeGreaterThan(50);
    expect(count).toBeLessThan(150);
  }
});

test("a company has the same key in each process, also if its id has more than 32 bits", () => {
  expect(throttleSlot(128)).toBe(throttleSlot(128));
  const large = [2 ** 40, 2 ** 41, 2 ** 42, 2 ** 43].map((id) => throttleSlot(id + 5));
  expect(new Set(large).size).toBeGreaterThan(1);
  for (const slot of large) expect(slot).toBeGreaterThan(0);
});

test("a key consists of 20 to 128 letters and digits", () => {
  for (const slot of [REFUSED, 7, THROTTLE_KEYS]) {
    expect(throttleKey("canvassing0a1b2c3dthrottle", slot)).toMatch(/^[A-Za-z0-9]{20,128}$/);
  }
});
