/** Tests the warnings of registrations against the JSON Schemas of the events, and how the cache of registrations counts its bytes. */

import { expect, test } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import * as limits from "#shared/limits.ts";
import { eventTypes } from "#shared/webhooks/catalogue.ts";
import { bytesOf, subscriptionsOf } from "#shared/webhooks/events/matching.ts";
import type { NewRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { warningsOf } from "#shared/webhooks/subscriptions/warnings.ts";
import { storedRegistration } from "#shared/webhooks/subscriptions/webhooks.ts";
import { automatic } from "./fixtures.ts";

const warned = (event: string, filter: Record<string, z.infer<ReturnType<typeof z.json>>> | null = null) =>
  warningsOf({ event, filter, triggerMode: "automatic" });

type Schema = Record<string, unknown>;
const Parts = z.record(z.string(), z.record(z.string(), z.unknown()));

/** Yields the path of each field in a JSON Schema. */
function* pathsIn(schema: Schema, definitions: Schema, above = ""): Generator<{ path: string; isOpen: boolean }> {
  if (typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").at(-1) ?? "";
    yield* pathsIn(Parts.parse(definitions)[name] ?? {}, definitions, above);
  }
  for (const one of z.array(z.record(z.string(), z.unknown())).parse(schema.anyOf ?? [])) {
    yield* pathsIn(one, definitions, above);
  }
  if (above !== "" && typeof schema.type === "string" && schema.type !== "null") {
    yield { path: above, isOpen: schema.additionalProperties === true };
  }
  for (const [name, inner] of Object.entries(Parts.parse(schema.properties ?? {}))) {
    yield* pathsIn(inner, definitions, above === "" ? name : `${above}.${name}`);
  }
}

test("a filter by any field of an event's schema has no warning, and one by another field has", () => {
  let checked = 0;
  for (const { event, schema } of eventTypes()) {
    for (const { path, isOpen } of pathsIn(schema, Parts.parse({ of: schema.$defs ?? {} }).of ?? {})) {
      checked++;
      expect(warned(event, { [path]: null }), `${event}: ${path}`).toEqual([]);
      expect(warned(event, { [`${path}.nope`]: null }).length, `${event}: ${path}.nope`).toBe(isOpen ? 0 : 1);
    }
    expect(warned(event)).toEqual([]);
    expect(warned(event, { nope: null, "prospect.constructor": 1 })).toEqual([
      `The data of ${event} has no nope, prospect.constructor, so the filter never matches.`,
    ]);
  }
  expect(checked).toBeGreaterThan(500);
});

test("a filter within a filter is checked by its whole paths", () => {
  const event = "prospect.status_changed";
  expect(warned(event, { newStatus: { value: "Sold" }, prospect: { "address.city": "Denver", tags: {} } })).toEqual([]);
  expect(warned(event, { newStatus: { name: "Sold" }, prospect: { "address.town": ["Denver"] } })).toEqual([
    `The data of ${event} has no newStatus.name, prospect.address.town, so the filter never matches.`,
  ]);
});

test("a name that no event has is a warning, which says what is sent and which event was probably meant", () => {
  expect(warned("prospect.statuschanged", { nope: 1 })).toEqual([
    "No event has the name prospect.statuschanged, so nothing is sent. Did you mean prospect.status_changed?",
  ]);
  expect(warningsOf({ event: "anything", filter: null, triggerMode: "manual" })).toEqual([
    "No event has the name anything, so only its button sends something.",
  ]);
});

const START = Date.UTC(2026, 5, 1);
const registration = automatic("prospect.created");

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
