/** Tests that PATCH changes only the fields in the body: after any sequence of bodies, a record has the last value of each field. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, Identified, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { sized } from "../harness/tier.ts";

const as = await newTeam();
const client = as.owner;

const Shown = z.looseObject({ id: z.number(), updatedAt: z.optional(z.string()) });
type Shown = z.infer<typeof Shown>;
type Body = Readonly<Record<string, unknown>>;

const made = async (path: string, body: object): Promise<number> =>
  bodyOf(await client("POST", path, body), 201, Identified).id;
const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };
const newUser = () => ({ email: `${uniqueName()}@x.test`, firstName: "A", lastName: "B", role: "sales" });
const [prospect, user] = await Promise.all([made("/api/prospects", {}), made("/api/users", newUser())]);
const addresses = await Promise.all([made("/api/addresses", home), made("/api/addresses", { ...home, zip: "2" })]);
const webhook = await made("/api/webhooks", { name: "W", url: "https://example.com/" });
const statuses = await Promise.all([1, 2].map(() => made("/api/statuses", { value: uniqueName() })));

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
  /** The path of the POST that creates the record. All generated sequences change this one record. */
  readonly collection: string;
  readonly first: object;
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
    first: {},
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
    first: {},
    fields: { name: text, polygon: ring, totalProperties: fc.nat(9), assignedToUserId: person },
  },
  appointment: {
    collection: `/api/prospects/${prospect}/appointments`,
    first: { title: "first", startAt: "2030-01-01T00:00:00Z" },
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
  note: {
    collection: `/api/prospects/${prospect}/notes`,
    first: { body: "first" },
    place: "/api/notes",
    fields: { body: text },
  },
  user: {
    collection: "/api/users",
    first: newUser(),
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
    first: { value: uniqueName() },
    fields: {
      value: fc.nat(1).map((n) => `status ${n}`),
      color: fc.constantFrom("#123456", "#ABCDEF"),
      sortOrder: fc.nat(9),
      isActive: fc.boolean(),
    },
  },
  tag: {
    collection: "/api/tags",
    first: { value: uniqueName() },
    fields: { value: fc.nat(1).map((n) => `tag ${n}`), color: fc.constantFrom("#123456", "#ABCDEF") },
  },
  address: {
    collection: "/api/addresses",
    first: { ...home, formattedAddress: "given" },
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
    first: { name: "W", url: "https://example.com/" },
    fields: { name: text, url: fc.constantFrom("https://example.com/a", "https://example.com/b") },
  },
  registration: {
    collection: `/api/webhooks/${webhook}/registrations`,
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
  const { collection, first, place = collection, fields } = kind;
  const path = `${place}/${await made(collection, first)}`;
  const body = fc.record(fields, { requiredKeys: [] });
  await fc.assert(
    fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 4 }), (bodies) => expectFold(path, kind, bodies)),
    { numRuns: sized({ short: 5, wide: 12 }) },
  );
});
