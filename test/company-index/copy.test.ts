/** Tests that the copy of a prospect in an index entry contains exactly the fields that a list shows. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { copyIn, copyItems, packFields, readCopies, worthReading } from "#shared/company-index/copy.ts";
import { prospectDelta } from "#shared/company-index/delta.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { formatted } from "#shared/prospects/address.ts";
import { copiedFields, indexRow, shownFields } from "#shared/prospects/indexed.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";

/** Generates mostly ordinary texts. An index entry rarely has a copy of a prospect with several odd texts, so nothing would be tested. */
const text = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom("Maria García", "maria@mail.test", "12 Main St", "ß STRASSE", "Ünal") },
  { weight: 1, arbitrary: fc.constantFrom("", "=", "\n", "a\nb") },
  { weight: 1, arbitrary: fc.string({ maxLength: 8, unit: "grapheme" }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 4, unit: fc.constantFrom("a", "\ud83d", "\udc00") }) },
);
const nullable = fc.option(text, { nil: null });
const id = fc.integer({ min: 1, max: 2 ** 53 - 1 });
const parts = {
  id,
  address1: text,
  address2: nullable,
  city: text,
  state: text,
  zip: text,
  formattedAddress: nullable,
};
const address = fc
  .record({ ...parts, isComputed: fc.boolean() })
  .map(({ isComputed, ...fields }) => (isComputed ? { ...fields, formattedAddress: formatted(fields) } : fields));
const time = fc
  .date({ min: new Date(0), max: new Date("2100-01-01"), noInvalidDate: true })
  .map((date) => date.toISOString());

const prospects = fc
  .record({
    id,
    version: fc.integer({ min: 1, max: 1_000 }),
    name: nullable,
    phoneNumber: nullable,
    secondaryPhoneNumber: nullable,
    emailAddress: nullable,
    lat: fc.option(fc.double({ min: -90, max: 90, noNaN: true }), { nil: null }),
    lng: fc.option(fc.double({ min: -180, max: 180, noNaN: true }), { nil: null }),
    address: fc.option(address, { nil: null }),
    statusId: fc.option(id, { nil: null }),
    assignedToUserId: fc.option(id, { nil: null }),
    tagIds: fc.array(id, { maxLength: 3 }),
    source: nullable,
    sourceId: nullable,
    sourceCreatedAt: fc.option(time, { nil: null }),
    customFieldData: fc.option(fc.json({ maxDepth: 1 }), { nil: null }),
    clientRecordId: fc.option(fc.uuid(), { nil: undefined }),
    createdAt: time,
    updatedAt: time,
  })
  .map((fields) => StoredProspect.parse({ type: "prospect", companyId: 1, createdBy: 1, updatedBy: 1, ...fields }));

/** Returns the fields of the prospect that a list shows. */
function listed(prospect: StoredProspect) {
  const { id: own, lat, lng, createdAt, updatedAt, statusId, assignedToUserId, tagIds } = prospect;
  const { name, phoneNumber, secondaryPhoneNumber, emailAddress, address: shown, clientRecordId } = prospect;
  const { source, sourceId, sourceCreatedAt, customFieldData } = prospect;
  const place = { id: own, lat, lng, createdAt, updatedAt, statusId, assignedToUserId, tagIds };
  const contact = { name, phoneNumber, secondaryPhoneNumber, emailAddress, address: shown, clientRecordId };
  return { ...place, ...contact, source, sourceId, sourceCreatedAt, customFieldData };
}

const withCopy = (prospect: StoredProspect): IndexRow => {
  const row = indexRow(prospect);
  const fields = copiedFields(prospect);
  return { ...row, copy: fields === undefined ? undefined : packFields(fields, row.text) };
};

test("a copy contains what the row contains, or there is no copy", () => {
  let copies = 0;
  fc.assert(
    fc.property(prospects, (prospect) => {
      const copy = copyIn(withCopy(prospect));
      if (copy === undefined) return;
      copies++;
      expect(shownFields(copy)).toMatchObject(listed(prospect));
    }),
    { numRuns: 1_000 },
  );
  expect(copies).toBeGreaterThan(50);
});

const base = {
  ...{ type: "prospect", id: 1, companyId: 1, version: 1, createdBy: 1, updatedBy: 1 },
  ...{ createdAt: "2026-06-01T12:00:00.000Z", updatedAt: "2026-06-01T12:00:00.000Z" },
  ...{ name: "Maria Garcia", phoneNumber: "+1 512 555 0134", emailAddress: "maria.garcia@mail.test", source: "api" },
};
const home = {
  id: 51_234_567,
  address1: "123 Maple Street",
  address2: null,
  city: "Denver",
  state: "CO",
  zip: "80202",
};

test.each([
  ["a name, phone number and e-mail address", {}, 16],
  ["also a UUID of a device", { clientRecordId: "0b5a2d3e-8c41-4f0a-9d67-1f2e3d4c5b6a" }, 48],
  ["also an address", { address: { ...home, formattedAddress: "123 Maple Street, Denver, CO 80202" } }, 60],
])("the copy of a prospect with %s is small", (_, fields, most) => {
  expect(withCopy(StoredProspect.parse({ ...base, ...fields })).copy?.length).toBeLessThanOrEqual(most);
});

test.each([
  ["large custom fields", { customFieldData: JSON.stringify(Array.from({ length: 200 }, (_, i) => i * 7919)) }],
  ["a name with a line break", { name: "Maria\nGarcia" }],
  ["an empty name", { name: "" }],
  ["a name with half of a surrogate pair", { name: "Maria \ud83d" }],
  ["an upper-case UUID", { clientRecordId: "0B5A2D3E-8C41-4F0A-9D67-1F2E3D4C5B6A" }],
  ["an address that is formatted as the mark for a computed one", { address: { ...home, formattedAddress: "=" } }],
  ["upcoming appointments without copies in the row", { moreUpcomingUntil: "2030-01-01T00:00:00.000Z" }],
])("there is no copy of a prospect with %s", (_, fields) => {
  expect(withCopy(StoredProspect.parse({ ...base, ...fields })).copy).toBeUndefined();
});

test("an entry whose text is in a separate row has no copy", () => {
  const long = StoredProspect.parse({ ...base, name: "Maria ".repeat(60).trim() });
  const [entry] = prospectDelta(1, indexRow(long), null, { shown: copiedFields(long) });
  expect(entry).not.toHaveProperty("put.copy");
  const [usual] = prospectDelta(1, indexRow(StoredProspect.parse(base)), null, {
    shown: copiedFields(StoredProspect.parse(base)),
  });
  expect(usual).toHaveProperty("put.copy");
});

test.each([
  { wanted: 1, bytes: 100, isRead: false },
  { wanted: 2, bytes: 4_096, isRead: true },
  { wanted: 2, bytes: 4_097, isRead: false },
  { wanted: 3, bytes: 4_097, isRead: true },
])("a row of copies with $bytes bytes is read for $wanted prospects: $isRead", ({ wanted, bytes, isRead }) => {
  const copies = {
    version: 1,
    id: "x",
    rows: [
      [9, 1],
      [99, bytes],
    ] satisfies [number, number][],
  };
  const records = Array.from({ length: wanted }, (_, i) => ({ id: 10 + i, version: 1, copies }));
  expect(worthReading(1, records)).toHaveLength(isRead ? 1 : 0);
});

test.each([
  { version: 1, isFound: true },
  { version: 2, isFound: false },
])("a copy of version 1 is used for version $version: $isFound", async ({ version, isFound }) => {
  const copy = copyIn(withCopy(StoredProspect.parse(base))) ?? expect.fail();
  const { items, copies } = copyItems(1, { version: 7, id: "x" }, [copy], 0);
  const groups = worthReading(1, [{ id: copy.id, version, copies }], items);
  // The type cast is safe: all rows are at hand, so the table is not read.
  const found = await readCopies({} as never, groups, items);
  expect([...found.keys()]).toEqual(isFound ? [copy.id] : []);
});
