/** Tests that PATCH changes only the fields in the body: after any sequence of bodies, a record has the last value of each field. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { sized } from "../harness/tier.ts";
import { pathOf } from "./matrix-stage.ts";
import { bodyFor } from "./matrix-table.ts";

const as = await newTeam();
const client = as.owner;

const Shown = z.looseObject({ id: z.number(), updatedAt: z.optional(z.string()) });
type Shown = z.infer<typeof Shown>;
type Body = Readonly<Record<string, unknown>>;

/** The ids of records in the paths below. */
const mine: Record<string, number> = {};
/** Creates a record with a valid body. Returns its id. */
const made = async (path: string, more: object = {}): Promise<number> => {
  const body = { ...bodyFor({ method: "POST", path }), ...more };
  return bodyOf(await client("POST", pathOf({ path }, mine), body), 201, Identified).id;
};
mine.prospects = await made("/api/prospects");
mine.webhooks = await made("/api/webhooks");
const user = await made("/api/users");
const addresses = [await made("/api/addresses"), await made("/api/addresses")];
const statuses = [await made("/api/statuses"), await made("/api/statuses")];

const text = fc.constantFrom("a", "b", "Ünï \u{1F415}", " c ");
const clearable = (value: fc.Arbitrary<unknown>) => fc.option(value);
const person = clearable(fc.constant(user));
const instant = fc.constantFrom("2030-01-01T10:00:00.000Z", "2030-02-28T23:59:59.999Z");
const later = fc.constantFrom("2031-01-01T10:00:00.000Z", "2031-06-01T00:00:00.000Z");
const ring = fc.array(fc.tuple(fc.constantFrom(0, 1.5, -180), fc.constantFrom(0, 1.5, 90)), {
  minLength: 3,
  maxLength: 4,
});

interface Kind {
  /** The route of the POST that creates the record. All generated sequences change this one record. */
  readonly collection: string;
  /** Fields with which the record is created, besides those of a valid body. */
  readonly first?: object;
  /** The path of the record without its id, if it differs from `collection`. */
  readonly place?: string;
  readonly fields: Readonly<Record<string, fc.Arbitrary<unknown>>>;
  /** Converts the fields of a request to the fields of an answer, if they differ. */
  readonly shownAs?: (body: Body) => Body;
}

const idOrNull = (id: unknown): unknown => (id === null ? null : expect.objectContaining({ id }));
/** Renames fields as an answer does: `currentStatusId: 5` becomes `currentStatus: { id: 5 }`. */
const shownAs =
  (names: Readonly<Record<string, string>>) =>
  (body: Body): Body =>
    Object.fromEntries(
      Object.entries(body).map(([name, value]) => {
        const shown = names[name];
        return shown === undefined ? [name, value] : [shown, idOrNull(value)];
      }),
    );

const kinds: Readonly<Record<string, Kind>> = {
  prospect: {
    collection: "/api/prospects",
    fields: {
      name: clearable(text),
      phoneNumber: clearable(text),
      secondaryPhoneNumber: clearable(text),
      emailAddress: clearable(fc.constantFrom("a@x.test", "b@x.test")),
      lat: clearable(fc.constantFrom(0, 1.25, -90)),
      lng: clearable(fc.constantFrom(0, 1.25, 180)),
      source: clearable(text),
      sourceId: clearable(text),
      customFieldData: clearable(fc.constantFrom({}, { a: 1 }, { b: [null], c: { d: "e" } })),
      currentStatusId: clearable(fc.constantFrom(...statuses)),
      assignedToUserId: person,
      addressId: clearable(fc.constantFrom(...addresses)),
    },
    shownAs: shownAs({ currentStatusId: "currentStatus", assignedToUserId: "assignedTo", addressId: "address" }),
  },
  territory: {
    collection: "/api/territories",
    fields: { name: text, polygon: ring, totalProperties: fc.nat(9), assignedToUserId: person },
  },
  appointment: {
    collection: "/api/prospects/{id}/appointments",
    place: "/api/appointments",
    fields: {
      title: text,
      startAt: instant,
      endAt: clearable(later),
      allDay: fc.boolean(),
      status: fc.constantFrom("scheduled", "completed", "cancelled", "no_show"),
      location: clearable(text),
      notes: clearable(text),
      assignedToUserId: person,
    },
    shownAs: shownAs({ assignedToUserId: "assignedTo" }),
  },
  note: { collection: "/api/prospects/{id}/notes", place: "/api/notes", fields: { body: text } },
  user: {
    collection: "/api/users",
    fields: {
      firstName: text,
      lastName: text,
      role: fc.constantFrom("sales", "admin", "owner"),
      permissions: fc.subarray(["canViewAllProspects", "canManageProspects"]),
      isActive: fc.boolean(),
    },
  },
  status: {
    collection: "/api/statuses",
    fields: {
      value: fc.nat(1).map((n) => `status ${n}`),
      color: fc.constantFrom("#123456", "#ABCDEF"),
      sortOrder: fc.nat(9),
      isActive: fc.boolean(),
    },
  },
  tag: {
    collection: "/api/tags",
    fields: { value: fc.nat(1).map((n) => `tag ${n}`), color: fc.constantFrom("#123456", "#ABCDEF") },
  },
  address: {
    collection: "/api/addresses",
    first: { formattedAddress: "given" },
    fields: {
      address1: text,
      address2: clearable(text),
      city: text,
      state: text,
      zip: text,
      formattedAddress: fc.constantFrom("one", "two"),
    },
  },
  webhook: {
    collection: "/api/webhooks",
    fields: { name: text, url: fc.constantFrom("https://example.com/a", "https://example.com/b") },
  },
  registration: {
    collection: "/api/webhooks/{id}/registrations",
    first: { event: "prospect.created" },
    fields: {
      event: fc.constantFrom("prospect.created", "prospect.deleted"),
      filter: clearable(fc.constantFrom({}, { "prospect.name": ["a", "b"] })),
      delayMinutes: fc.nat(9),
      triggerMode: fc.constantFrom("automatic", "manual"),
      manualTriggerButtonText: clearable(text),
    },
  },
};

async function expectFold(path: string, { shownAs = (body) => body }: Kind, bodies: readonly Body[]): Promise<void> {
  let shown: Shown = bodyOf(await client("PATCH", path, {}), 200, Shown);
  for (const body of [...bodies, {}]) {
    const before = shown;
    shown = bodyOf(await client("PATCH", path, body), 200, Shown);
    const { updatedAt = "", ...wanted } = { ...before, ...shownAs(body) };
    expect(shown).toEqual({ ...wanted, updatedAt: shown.updatedAt });
    expect(Object.keys(shown)).toEqual(Object.keys(before));
    const isSame = JSON.stringify({ ...shown, updatedAt }) === JSON.stringify({ ...before, updatedAt });
    if (isSame) expect(shown.updatedAt).toBe(before.updatedAt);
    else if (updatedAt !== "") expect((shown.updatedAt ?? "") > updatedAt).toBe(true);
  }
  expect(bodyOf(await client("GET", path), 200, Shown)).toMatchObject(shown);
}

test.each(Object.entries(kinds))("%s", { tags: "sized" }, async (_, kind) => {
  const { collection, first, place = pathOf({ path: collection }, mine), fields } = kind;
  const path = `${place}/${await made(collection, first)}`;
  const body = fc.record(fields, { requiredKeys: [] });
  await fc.assert(
    fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 4 }), (bodies) => expectFold(path, kind, bodies)),
    { numRuns: sized({ short: 5, wide: 12 }) },
  );
});
