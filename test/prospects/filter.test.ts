/** Tests that lists of random companies agree with a second implementation of the filters, and the comma-separated values of a filter. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { ProspectFilter, commaList as parsedList } from "#shared/prospects/filter.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { prospectPredicate } from "../harness/one-prospect.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import { sized } from "../harness/tier.ts";

/** The names of statuses, tags and users of a company. The ids of statuses begin at 101, of users at 201, and of tags at 301. */
interface Names {
  readonly statuses: readonly string[];
  readonly tags: readonly string[];
  readonly people: readonly { readonly firstName: string; readonly lastName: string }[];
}

const now = "2026-01-01T00:00:00.000Z";
const dated = { createdAt: now, updatedAt: now };

const byId = <T, U extends object>(first: number, entries: readonly T[], row: (entry: T) => U) =>
  new Map(entries.map((entry, i) => [first + i, { id: first + i, version: 1, ...dated, ...row(entry) }]));

const status = { type: "status" as const, color: "#000000", sortOrder: 1 };
const rights = { role: "sales" as const, permissions: [], isActive: true };
const user = { type: "user" as const, companyId: 1, sub: "s", email: "u@x.test", ...rights };
const dictionaryOf = ({ statuses, tags, people }: Names): Dictionary => ({
  version: 1,
  statuses: byId(101, statuses, (value) => ({ ...status, value, isActive: value !== "New" })),
  tags: byId(301, tags, (value) => ({ type: "tag" as const, value, color: "#000000" })),
  users: byId(201, people, (person) => ({ ...user, ...person })),
});

/** Generates only a few different coordinates, including the limits, so that filters often match. */
const coordinate = (limit: number) => fc.constantFrom(null, -limit, -1, 0, 0.5, 1, limit - 0.25, limit);
const instants = [
  "2026-01-01T00:00:00.000Z",
  "2026-01-01T23:59:59.999Z",
  "2026-01-02T00:00:00.000Z",
  "2025-12-31T12:00:00.000Z",
];
const words = fc.constantFrom(null, "Ada Hale", "hail 303", "100%_x", "Été", "E\u0301te\u0301");
const prospect = fc
  .record({
    name: words,
    phoneNumber: fc.constantFrom(null, "(303) 555-01", "3035"),
    secondaryPhoneNumber: fc.constantFrom(null, "+1 720-1"),
    emailAddress: fc.constantFrom(null, "ada@x.test"),
    lat: coordinate(90),
    lng: coordinate(180),
    city: fc.constantFrom(
      ...[null, "Denver", "denver ", "Aurora", "Groß", "Orléans", "ΠΟΛΙΣ"],
      ...["Washington, D.C.", '"Q"', '"Wash', 'D.C."'],
    ),
    statusId: fc.constantFrom(null, 101, 102, 103),
    assignedToUserId: fc.constantFrom(null, 201, 202, 203),
    tagIds: fc.subarray([301, 302, 399]),
    sourceId: fc.constantFrom(null, "A1", "a1", "x, y", "zwei  drei"),
    createdAt: fc.constantFrom(...instants),
  })
  .map(({ city, ...fields }): StoredProspect => {
    const address = { id: 5, address1: "1 Main St", address2: null, state: "CO", zip: "80202", formattedAddress: null };
    return prospectRow({ ...fields, address: city === null ? null : { ...address, city } });
  });
const company = fc.record({
  names: fc.record({
    statuses: fc.shuffledSubarray(["New", "Not Home", "SOLD", "Cafe\u0301"]),
    tags: fc.shuffledSubarray(["Hail", "VIP"]),
    people: fc.shuffledSubarray([
      { firstName: "Rita", lastName: "Rep" },
      { firstName: "Ravi", lastName: "Van Dam" },
      { firstName: "Sam", lastName: "Rep, Jr." },
    ]),
  }),
  rows: fc.array(fc.tuple(prospect, fc.array(fc.constantFrom("Hale dog", "call 720", "ÉTÉ"), { maxLength: 2 })), {
    maxLength: 12,
  }),
});

/** Generates comma-separated lists with closed and unclosed quotes, and random texts of the values, quotes, commas and spaces. */
const commaList = (...values: string[]) =>
  fc.oneof(
    fc
      .array(fc.constantFrom(...values, "nothing", "", " ", '""', '"'), { maxLength: 3 })
      .map((list) => list.join(" ,")),
    fc.string({ unit: fc.constantFrom(...values, '"', '"', ",", " "), maxLength: 6 }),
  );
const box = fc.tuple(
  fc.constantFrom(-180, -1, 0.5, 170),
  fc.constantFrom(-90, -1, 0),
  fc.constantFrom(-170, 0.5, 1, 180),
  fc.constantFrom(0, 0.5, 90),
);
const searches = [
  ...["hale", "303", "303 555", "(303)", "été", "ete", "E\u0301", "%"],
  ...["_x", "ada dog", "720", "main CO", "test", " ", "zz"],
];
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });
const query = fc.record({
  bbox: maybe(box.map((sides) => sides.join(","))),
  dateFrom: maybe(fc.constantFrom("2026-01-01", "2026-01-02", "2026-01-01T12:00:00Z", "2026-01-01T01:00:00+01:00")),
  dateTo: maybe(fc.constantFrom("2026-01-01", "2025-12-31", "2026-01-01T23:59:59.999Z")),
  status: maybe(commaList("new", "NOT HOME", " sold ", "CAFÉ")),
  assignedToUserId: maybe(
    fc.subarray(["201", "203", "unassigned", "77", "9".repeat(30)]).map((list) => list.join(",")),
  ),
  rep: maybe(commaList("rita rep", "RAVI VAN DAM", '"sam rep, jr."')),
  tagId: maybe(commaList("hail", "Vip")),
  city: maybe(
    commaList(
      ...["DENVER", '"aurora"', '"washington, d.c."', '"""Q"""', '"Wash, D.C."'],
      ...["washington", "GROSS", "orle\u0301ans", "πολις"],
    ),
  ),
  sourceId: maybe(commaList("A1", " a1 ", '"x, y"', "zwei  drei", "zwei drei")),
  search: maybe(fc.constantFrom(...searches)),
});

type Query = typeof query extends fc.Arbitrary<infer Value> ? Value : never;

/** Normalises a text. It handles only the letters that occur in these tests. */
const lower = (text: string): string =>
  text.trim().toLowerCase().replaceAll("e\u0301", "é").replaceAll("ß", "ss").replaceAll("ς", "σ");
const searched = (text: string): string => lower(text).replaceAll("é", "e");
const listed = (raw: string | undefined): string[] => valuesIn(raw).map(lower);
const valuesIn = (raw = ""): string[] =>
  parsedList(raw)
    .map((value) => value.trim())
    .filter(Boolean);

/** The second implementation, which shares only `parsedList`. `who` is an admin, a user who sees all, or the rep with the id 201. */
function oracle(row: StoredProspect, notes: readonly string[], raw: Query, who: string, names: Names): boolean {
  const oneOf = (list: string[], values: (string | undefined)[]) =>
    list.length === 0 || values.some((value) => value !== undefined && list.includes(lower(value)));
  const rep = names.people[(row.assignedToUserId ?? 0) - 201];
  const isAdmin = who === "admin";
  return (
    (who !== "rep" || row.assignedToUserId === 201) &&
    (raw.bbox === undefined || isInside(row, raw.bbox.split(",").map(Number))) &&
    isWithin(Date.parse(row.createdAt), raw) &&
    oneOf(listed(raw.status), [names.statuses[(row.statusId ?? 0) - 101]]) &&
    oneOf(
      listed(raw.tagId),
      row.tagIds.map((id) => names.tags[id - 301]),
    ) &&
    oneOf(listed(raw.city), [row.address?.city]) &&
    isOfSource(row.sourceId, raw.sourceId) &&
    (!isAdmin || oneOf(listed(raw.assignedToUserId), [String(row.assignedToUserId ?? "unassigned")])) &&
    (!isAdmin || oneOf(listed(raw.rep), [rep && `${rep.firstName} ${rep.lastName}`])) &&
    searched(raw.search ?? "")
      .split(" ")
      .every((word) => isFound(word, row, notes))
  );
}

function isOfSource(sourceId: string | null, raw: string | undefined): boolean {
  const wanted = valuesIn(raw);
  return wanted.length === 0 || wanted.some((value) => value === sourceId);
}

function isInside({ lat, lng }: StoredProspect, [west = 0, south = 0, east = 0, north = 0]: number[]): boolean {
  if (lat === null || lng === null || lat < south || lat > north) return false;
  return west <= east ? west <= lng && lng <= east : !(east < lng && lng < west);
}

function isWithin(at: number, { dateFrom, dateTo }: Query): boolean {
  const last = dateTo?.length === 10 ? `${dateTo}T23:59:59.999Z` : dateTo;
  return (dateFrom === undefined || at >= Date.parse(dateFrom)) && (last === undefined || at <= Date.parse(last));
}

function isFound(word: string, row: StoredProspect, notes: readonly string[]): boolean {
  const phones = [row.phoneNumber, row.secondaryPhoneNumber];
  const { address1, city, state, zip } = row.address ?? {};
  const texts = [row.name, row.emailAddress, ...phones, address1, city, state, zip, ...notes];
  const digits = (text: string | null): string => (text ?? "").replace(/\D/g, "");
  const isNumber = /^[\d()+ -]*\d[\d()+ -]*$/.test(word);
  return (
    texts.some((text) => searched(text ?? "").includes(word)) ||
    (isNumber && phones.some((phone) => digits(phone).includes(digits(word))))
  );
}

const callers: Record<string, Caller> = {
  admin: { companyId: 1, userId: 9, role: "admin", permissions: [] },
  viewer: { companyId: 1, userId: 201, role: "sales", permissions: ["canViewAllProspects"] },
  rep: { companyId: 1, userId: 201, role: "sales", permissions: [] },
};

test("a list has the rows that the second implementation accepts, newest first", { tags: "sized" }, () => {
  let hits = 0;
  fc.assert(
    fc.property(company, query, fc.constantFrom("admin", "viewer", "rep"), ({ names, rows }, raw, who) => {
      const caller = callers[who];
      if (caller === undefined) throw new Error("no such caller");
      const prospects = rows.map(([row], i) => ({ ...row, id: i + 1 }));
      const notesOf = new Map(rows.map(([, notes], i) => [i + 1, notes]));
      const filter = z.parse(ProspectFilter, raw);
      const passes = prospectPredicate(filter, caller, dictionaryOf(names));
      const found = prospects
        .filter((row) => passes(row, notesOf.get(row.id) ?? []))
        .sort((a, b) => b.createdAt.localeCompare(a.createdAt) || b.id - a.id);
      const wanted = prospects.filter((row) => oracle(row, notesOf.get(row.id) ?? [], raw, who, names));
      wanted.sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt) || b.id - a.id);
      expect(found.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id));
      if (wanted.length > 0) hits++;
    }),
    { numRuns: sized({ short: 2_000, wide: 10_000 }) },
  );
  // `hits` counts the random queries that find at least one prospect. With only a few of them, the test would prove little, because it
  // would compare almost only empty lists.
  expect(hits).toBeGreaterThan(100);
});

test.each([
  ['"Washington, D.C.",Denver', ["Washington, D.C.", "Denver"]],
  [' "a ""b"", c" , d,, ', ['a "b", c', "d"]],
  ['"a,b', ['"a', "b"]],
  ['"a,b"c,d', ['"a', 'b"c', "d"]],
  ['x"a,b"', ['x"a', 'b"']],
  ['"""VIP""","",""""', ['"VIP"', '"']],
  ['"  "', []],
  ['"a" "b",c', ['"a" "b"', "c"]],
  [' "a,b" ," c"', ["a,b", "c"]],
  ['a "b,c"', ['a "b', 'c"']],
  ['"a""', ['"a""']],
  [',"', ['"']],
])("%j contains %j", (text, names) => {
  expect(valuesIn(text)).toEqual(names);
});

test("a quoted value, or an unquoted one without commas, is read back unchanged", () => {
  const value = fc.string({ unit: fc.constantFrom("a", "B", '"', ",", "é"), minLength: 1 });
  fc.assert(
    fc.property(fc.array(value), (values) => {
      expect(parsedList(values.map((one) => `"${one.replaceAll('"', '""')}"`).join(", "))).toEqual(
        values.length === 0 ? [""] : values,
      );
      const plain = values.filter((one) => !/[",]/.test(one));
      expect(valuesIn(plain.join(","))).toEqual(plain);
    }),
  );
});
