/** Tests the times of retries, delivery ids, the delays of queue messages, and which events a filter matches. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import { deliveryId } from "#shared/webhooks/delivery.ts";
import { DeliveryMessage } from "#shared/webhooks/messages.ts";
import { MAX_ATTEMPTS, nextGapMs } from "#shared/webhooks/retry-plan.ts";
import { EventFilter } from "#shared/webhooks/subscriptions/filter.ts";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter-match.ts";

describe("the retry plan", () => {
  test("has ten attempts over 75 h 35 min, each gap within 20 % of the documented one", () => {
    const decided = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map((seconds) => seconds * 1_000);
    expect(decided.reduce((sum, gap) => sum + gap, 0)).toBe((75 * 3_600 + 35 * 60 + 5) * 1_000);
    expect(MAX_ATTEMPTS).toBe(10);
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 9 }), (id, failed) => {
        const gap = nextGapMs(id, failed, undefined, 0, 1) ?? 0;
        const wanted = decided[failed - 1] ?? 0;
        expect(gap).toBeGreaterThanOrEqual(wanted * 0.8);
        expect(gap).toBeLessThanOrEqual(wanted * 1.2);
        expect(nextGapMs(id, failed, undefined, 0, 1)).toBe(gap);
        expect(nextGapMs(id, failed, undefined, 0, 60)).toBeCloseTo(gap / 60);
      }),
    );
    expect(nextGapMs("x", 10, undefined, 0, 1)).toBeUndefined();
  });

  const now = Date.UTC(2026, 5, 1);
  const DAY = 86_400_000;

  test.each([
    ["120", 120_000],
    [" 120 ", 120_000],
    ["0", 1_000],
    ["86400", DAY],
    ["86401", DAY],
    ["9".repeat(400), DAY],
    ["Mon, 01 Jun 2026 00:00:30 GMT", 30_000],
    ["Sun, 31 May 2026 23:00:00 GMT", 1_000],
    ["Fri, 01 Jan 2100 00:00:00 GMT", DAY],
  ])("Retry-After %j is honoured within 1 s and 24 h", (value, gapMs) => {
    expect(nextGapMs("x", 1, value, now, 1)).toBe(gapMs);
  });

  test.each([
    ...["", "soon", "-5", "+120", "1.5", "1e3", "0x10", "Infinity", "7, 9", "2026-06-01T00:00:30Z"],
    ...["Mon, 99 Jun 2026 00:00:30 GMT", "Mon, 01 Jun 2026 25:00:00 GMT", "Monday, 01-Jun-26 00:00:30 GMT"],
  ])("an invalid Retry-After %j is ignored", (value) => {
    expect(nextGapMs("x", 1, value, now, 1)).toBe(nextGapMs("x", 1, undefined, now, 1));
  });
});

describe("delivery ids", () => {
  const instant = fc.date({ min: new Date(0), max: new Date("2500-01-01"), noInvalidDate: true });

  test("are the same for the same event and registration, and differ otherwise", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.nat(), instant, (event, a, b, at) => {
        const id = deliveryId(event, a, at.toISOString());
        expect(deliveryId(event, a, at.toISOString())).toBe(id);
        if (a !== b) expect(deliveryId(event, b, at.toISOString())).not.toBe(id);
        const message = { v: 1, companyId: 1, webhookId: 2, deliveryId: id, attempt: 1 };
        expect(z.safeParse(DeliveryMessage, message).success).toBe(true);
      }),
    );
  });

  test("sort by time", () => {
    fc.assert(
      fc.property(instant, instant, (a, b) => {
        fc.pre(a.getTime() < b.getTime());
        expect(deliveryId("x", 1, a.toISOString()) < deliveryId("y", 2, b.toISOString())).toBe(true);
      }),
    );
  });
});

test("the delay of a message is never too short and never above the queue's limit", () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e6, max: 1e8 }), (waitMs) => {
      const seconds = delaySecondsUntil(1e9 + waitMs, 1e9);
      expect(Number.isInteger(seconds) && seconds >= 0 && seconds <= 900).toBe(true);
      if (waitMs <= 900_000) expect(seconds * 1_000).toBeGreaterThanOrEqual(waitMs);
    }),
  );
});

describe("event filters", () => {
  const data = {
    prospect: { id: 7, name: null, tags: ["a"], currentStatus: { value: "Sold" } },
    newStatus: { value: "Sold" },
  };

  test.each<[unknown, boolean]>([
    [{}, true],
    [{ "newStatus.value": "Sold" }, true],
    [{ newStatus: { value: "Sold" } }, true],
    [{ "prospect.currentStatus": { value: "Sold" } }, true],
    [{ "newStatus.value": ["New", "Sold"] }, true],
    [{ "newStatus.value": "sold" }, false],
    [{ "prospect.id": "7" }, false],
    [{ "prospect.name": null }, true],
    [{ "prospect.nothing": null }, false],
    [{ "newStatus.value": "Sold", "prospect.id": 8 }, false],
    [{ "prospect.constructor.name": "Object" }, false],
    [{ __proto__: null, toString: "x" }, false],
    [{ "prospect.tags.length": 1 }, false],
  ])("%j -> %s", (filter, expected) => {
    expect(matchesFilter(z.parse(EventFilter, filter), data)).toBe(expected);
  });

  test("dots count as levels, and a filter is an object of values and lists of values", () => {
    expect(z.safeParse(EventFilter, { "a.b.c.d.e": 1 }).success).toBe(true);
    expect(z.safeParse(EventFilter, { "a.b.c.d.e.f": 1 }).success).toBe(false);
    expect(z.safeParse(EventFilter, { a: { b: { c: { d: { "e.f": 1 } } } } }).success).toBe(false);
    expect(z.safeParse(EventFilter, { a: [{ b: 1 }] }).success).toBe(false);
    expect(z.safeParse(EventFilter, [1]).success).toBe(false);
  });
});
