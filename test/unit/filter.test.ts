/** Law: the list's filters agree with an oracle written from the decisions, for random companies and queries. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { Dictionary } from "#shared/companies/dictionary.ts";
import { ProspectFilter, prospectPredicate } from "#shared/prospects/filter.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

const now = "2026-01-01T00:00:00.000Z";
const statusValues = ["New", "Not Home", "SOLD"];
const tagValues = ["Hail", "VIP"];
const people = [
  { id: 201, firstName: "Rita", lastName: "Rep" },
  { id: 202, firstName: "Ravi", lastName: "Van Dam" },
];

const dictionary: Dictionary = {
  statuses: new Map(
    statusValues.map((value, i) => {
      const id = 101 + i;
      const dated = { createdAt: now, updatedAt: now };
      return [id, { type: "status", id, value, color: "#000000", sortOrder: i, isActive: i > 0, version: 1, ...dated }];
    }),
  ),
  tags: new Map(
    tagValues.map((value, i) => {
      const dated = { createdAt: now, updatedAt: now };
      return [301 + i, { type: "tag", id: 301 + i, value, color: "#000000", version: 1, ...dated }];
    }),
  ),
  users: new Map(
    people.map((person) => [
      person.id,
      {
        ...person,
        type: "user",
        companyId: 1,
        sub: `s${person.id}`,
        email: `u${person.id}@x.test`,
        role: "sales",
        permissions: [],
        isActive: true,
        version: 1,
        createdAt: now,
        updatedAt: now,
      },
    ]),
  ),
};

const empty: StoredProspect = {
  type: "prospect",
  id: 1,
  companyId: 1,
  name: null,
  phoneNumber: null,
  secondaryPhoneNumber: null,
  emailAddress: null,
  lat: null,
  lng: null,
  address: null,
  statusId: null,
  statusHistoryId: null,
  assignedToUserId: null,
  assignedByUserId: null,
  tagIds: [],
  source: null,
  sourceId: null,
  sourceCreatedAt: null,
  customFieldData: null,
  createdAt: now,
  updatedAt: now,
  createdBy: 9,
  updatedBy: 9,
  version: 1,
};

const cities = ["Denver", "denver ", "Aurora"];
const address = (city: string) => ({
  id: 5,
  address1: "1 Main St",
  address2: null,
  city,
  state: "CO",
  zip: "80202",
  formattedAddress: null,
});

/** Few distinct values, edges among them, so that filters meet rows often. */
const coordinate = (limit: number) => fc.constantFrom(null, -limit, -1, 0, 0.5, 1, limit - 0.25, limit);
const instants = [
  "2026-01-01T00:00:00.000Z",
  "2026-01-01T23:59:59.999Z",
  "2026-01-02T00:00:00.000Z",
  "2025-12-31T12:00:00.000Z",
];
const prospect: fc.Arbitrary<StoredProspect> = fc
  .record({
    lat: coordinate(90),
    lng: coordinate(180),
    city: fc.constantFrom(null, ...cities),
    statusId: fc.constantFrom(null, 101, 102, 103),
    assignedToUserId: fc.constantFrom(null, 201, 202),
    tagIds: fc.subarray([301, 302]),
    createdAt: fc.constantFrom(...instants),
  })
  .map(({ city, ...fields }) => ({ ...empty, ...fields, address: city === null ? null : address(city) }));

const commaList = (...values: string[]) =>
  fc.array(fc.constantFrom(...values, "nothing", "", " "), { maxLength: 3 }).map((list) => list.join(" ,"));
const box = fc.tuple(
  fc.constantFrom(-180, -1, 0.5, 170),
  fc.constantFrom(-90, -1, 0),
  fc.constantFrom(-170, 0.5, 1, 180),
  fc.constantFrom(0, 0.5, 90),
);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const query = fc.record({
  bbox: maybe(box.map((sides) => sides.join(","))),
  dateFrom: maybe(fc.constantFrom("2026-01-01", "2026-01-02", "2026-01-01T12:00:00Z", "2026-01-01T01:00:00+01:00")),
  dateTo: maybe(fc.constantFrom("2026-01-01", "2025-12-31", "2026-01-01T23:59:59.999Z")),
  status: maybe(commaList("new", "NOT HOME", " sold ")),
  assignedToUserId: maybe(fc.subarray(["201", "202", "unassigned", "77"]).map((list) => list.join(","))),
  rep: maybe(commaList("rita rep", "RAVI VAN DAM")),
  tagId: maybe(commaList("hail", "Vip")),
  city: maybe(commaList("DENVER", "aurora")),
});

const callers: Record<string, Caller> = {
  admin: { companyId: 1, userId: 9, role: "admin", permissions: [] },
  viewer: { companyId: 1, userId: 201, role: "sales", permissions: ["canViewAllProspects"] },
  rep: { companyId: 1, userId: 201, role: "sales", permissions: [] },
};

/** Written from the decisions, sharing nothing with the filter under test. */
function oracle(row: StoredProspect, raw: Record<string, string | undefined>, who: string): boolean {
  const words = (list: string | undefined) =>
    (list ?? "")
      .split(",")
      .map((w) => w.trim().toLowerCase())
      .filter(Boolean);
  if (who === "rep" && row.assignedToUserId !== 201) return false;
  if (raw.bbox !== undefined) {
    const [w = 0, s = 0, e = 0, n = 0] = raw.bbox.split(",").map(Number);
    if (row.lat === null || row.lng === null || row.lat < s || row.lat > n) return false;
    const inside = w <= e ? w <= row.lng && row.lng <= e : !(e < row.lng && row.lng < w);
    if (!inside) return false;
  }
  const at = new Date(row.createdAt).getTime();
  if (raw.dateFrom !== undefined && at < new Date(raw.dateFrom).getTime()) return false;
  if (raw.dateTo !== undefined) {
    const last = raw.dateTo.length === 10 ? `${raw.dateTo}T23:59:59.999Z` : raw.dateTo;
    if (at > new Date(last).getTime()) return false;
  }
  const one = (list: string[], value: string | undefined) =>
    list.length === 0 || (value !== undefined && list.includes(value));
  const status = row.statusId === null ? undefined : statusValues[row.statusId - 101]?.toLowerCase();
  if (!one(words(raw.status), status)) return false;
  const tags = words(raw.tagId);
  if (tags.length > 0 && !row.tagIds.some((id) => tags.includes(tagValues[id - 301]?.toLowerCase() ?? "")))
    return false;
  if (!one(words(raw.city), row.address?.city.trim().toLowerCase())) return false;
  if (who === "admin") {
    const ids = words(raw.assignedToUserId);
    if (!one(ids, row.assignedToUserId === null ? "unassigned" : String(row.assignedToUserId))) return false;
    const name = { 201: "rita rep", 202: "ravi van dam" }[row.assignedToUserId ?? 0];
    if (!one(words(raw.rep), name)) return false;
  }
  return true;
}

test("a row passes exactly when the oracle says so", () => {
  const examples = fc.tuple(prospect, query, fc.constantFrom("admin", "viewer", "rep"));
  fc.assert(
    fc.property(examples, ([row, raw, who]) => {
      const caller = callers[who];
      if (caller === undefined) throw new Error("no such caller");
      const filter = z.parse(ProspectFilter, raw);
      expect(prospectPredicate(filter, caller, dictionary)(row, [])).toBe(oracle(row, raw, who));
    }),
    { numRuns: 5_000 },
  );
});

test.each([
  ["bbox", "1,2,3"],
  ["bbox", "1,2,3,4,5"],
  ["bbox", "a,b,c,d"],
  ["bbox", "0,10,1,5"],
  ["bbox", "-181,0,0,1"],
  ["bbox", "NaN,0,Infinity,1"],
  ["bbox", ""],
  ["dateFrom", "2026-02-30"],
  ["dateTo", "yesterday"],
  ["dateFrom", "2026-01-01T25:00:00Z"],
])("%s=%s is refused", (name, value) => {
  expect(z.safeParse(ProspectFilter, { [name]: value }).success).toBe(false);
});
