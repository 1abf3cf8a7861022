/** Tests that the cache of subscriptions, which the publisher has in memory, counts its bytes and is bounded. */
import { describe, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import * as limits from "#shared/limits.ts";
import { SubscriptionsCache, subscriptionsOf } from "#shared/webhooks/events/matching.ts";
import type { NewRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { storedRegistration } from "#shared/webhooks/subscriptions/webhooks.ts";

const START = Date.UTC(2026, 5, 1);
const registration: NewRegistration = {
  event: "prospect.created",
  filter: null,
  delayMinutes: 0,
  triggerMode: "automatic",
  manualTriggerButtonText: null,
};

describe("the cache", () => {
  const webhook = {
    type: "webhook",
    id: 1,
    companyId: 1,
    name: "x",
    url: "http://127.0.0.1:1/",
    sealedSecret: new Uint8Array(),
    secretMask: "",
    status: "active",
    registrationCount: 0,
    createdAt: iso(START),
    updatedAt: iso(START),
  } as const;
  const entry = (count: number, filter: NewRegistration["filter"] = null) => {
    const registrations = Array.from({ length: count }, (_, i) =>
      storedRegistration(1, 1, i + 1, { ...registration, filter }, iso(START)),
    );
    return { version: 1, readAt: START, subscriptions: subscriptionsOf([{ webhook, registrations }]) };
  };

  test("is bounded, and evicts the least recently used companies", () => {
    const one = new SubscriptionsCache(Number.POSITIVE_INFINITY);
    one.set(1, entry(50));
    const cache = new SubscriptionsCache(10.5 * one.bytes);
    for (let companyId = 1; companyId <= 10; companyId++) cache.set(companyId, entry(50));
    cache.get(1);
    for (let companyId = 11; companyId <= 14; companyId++) cache.set(companyId, entry(50));
    const kept = Array.from({ length: 14 }, (_, i) => i + 1).filter((companyId) => cache.get(companyId) !== undefined);
    expect(kept).toEqual([1, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    cache.set(14, entry(50));
    expect(cache.bytes).toBe(10 * one.bytes);
    for (let companyId = 1; companyId <= 14; companyId++) cache.delete(companyId);
    expect(cache.bytes).toBe(0);
  });

  test("counts the bytes of filters, and counts 400 bytes for a company without registrations", () => {
    const bytesOf = (cached: ReturnType<typeof entry>) => {
      const cache = new SubscriptionsCache(1);
      cache.set(1, cached);
      return cache.bytes;
    };
    expect(bytesOf(entry(0))).toBe(400);
    const filter = { "territory.totalProperties": Array.from({ length: 1_000 }, (_, i) => i) };
    expect(bytesOf(entry(100, filter))).toBeGreaterThan(100 * 6 * JSON.stringify(filter).length);
    expect(bytesOf(entry(limits.webhooksPerCompany * limits.registrationsPerWebhook))).toBeLessThan(1_000_000);
  });
});
