/** Tests how the cache of subscriptions, which the publisher has in memory, counts its bytes. */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import * as limits from "#shared/limits.ts";
import { bytesOf, subscriptionsOf } from "#shared/webhooks/events/matching.ts";
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
const bytesWith = (count: number, filter: NewRegistration["filter"] = null): number => {
  const registrations = Array.from({ length: count }, (_, i) =>
    storedRegistration(1, 1, i + 1, { ...registration, filter }, iso(START)),
  );
  return bytesOf(subscriptionsOf([{ webhook, registrations }]));
};

test("the cache counts the bytes of filters, and counts 400 bytes for a company without registrations", () => {
  expect(bytesWith(0)).toBe(400);
  const filter = { "territory.totalProperties": Array.from({ length: 1_000 }, (_, i) => i) };
  expect(bytesWith(100, filter)).toBeGreaterThan(100 * 6 * JSON.stringify(filter).length);
  expect(bytesWith(limits.webhooksPerCompany * limits.registrationsPerWebhook)).toBeLessThan(1_000_000);
});
