/** Tests that the copies of prospects, notes and appointments in index entries contain exactly the fields that the API shows. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import {
  appointmentsIn,
  appointmentsText,
  noteIn,
  packAppointment,
  packNote,
  unpackAppointment,
  unpackNote,
} from "#shared/company-index/copies/attached.ts";
import { packProspect, prospectCopyIn } from "#shared/company-index/copies/prospect.ts";
import { copyItems, readCopies, worthReading } from "#shared/company-index/copies/rows.ts";
import { decompress } from "#shared/company-index/encoding.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { prospectDelta } from "#shared/company-index/write/entries.ts";
import { formatted } from "#shared/prospects/address.ts";
import {
  appointmentOfCopy,
  copiedAppointment,
  copiedFields,
  copiedNote,
  indexNote,
  indexRow,
  noteOfCopy,
  shownFields,
} from "#shared/prospects/indexed.ts";
import { StoredAppointment, StoredNote, StoredProspect } from "#shared/prospects/stored.ts";

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

/** Omits fields whose value is undefined, as the table does. */
const withoutUndefined = (fields: object): unknown => JSON.parse(JSON.stringify(fields));

/** Ids of the usual size. Larger ids would leave too little room for several appointments. */
const usualId = fc.integer({ min: 1_000_000, max: 99_999_999 });
const attached = { type: fc.constant("note"), id: usualId, companyId: fc.constant(1), prospectId: fc.constant(7) };
const userId = fc.option(usualId, { nil: null });
const occurredAt = fc.option(time, { nil: undefined });
const dated = { createdAt: time, updatedAt: time, createdBy: userId, version: fc.integer({ min: 1, max: 99 }) };
const notes = fc
  .record({ ...attached, body: text, ...dated, occurredAt })
  .map((fields) => StoredNote.parse(withoutUndefined(fields)));
const appointments = fc
  .record({
    ...attached,
    ...dated,
    type: fc.constant("appointment"),
    title: text,
    startAt: time,
    endAt: fc.option(time, { nil: null }),
    allDay: fc.boolean(),
    status: fc.constantFrom("scheduled", "completed", "cancelled", "no_show"),
    location: nullable,
    notes: nullable,
    assignedToUserId: userId,
    occurredAt,
  })
  .map((fields) => StoredAppointment.parse(withoutUndefined(fields)));

const prospects = fc
  .record({
    id: fc.constant(7),
    upcoming: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(appointments, { maxLength: 1 })),
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
  const { source, sourceId, sourceCreatedAt, customFieldData, upcoming } = prospect;
  const place = { id: own, lat, lng, createdAt, updatedAt, statusId, assignedToUserId, tagIds };
  const contact = { name, phoneNumber, secondaryPhoneNumber, emailAddress, address: shown, clientRecordId };
  return { ...place, ...contact, source, sourceId, sourceCreatedAt, customFieldData, upcoming };
}

const withCopy = (prospect: StoredProspect): IndexRow => {
  const row = indexRow(prospect);
  const fields = copiedFields(prospect);
  const { copy, copyWithNext } = fields === undefined ? {} : packProspect(fields, row.text);
  const bytes = copyWithNext ?? copy;
  return { ...row, copy: bytes && { bytes, hasNext: copyWithNext !== undefined, appointmentAt: undefined } };
};

test("a copy contains what the row contains, or there is no copy", () => {
  let copies = 0;
  fc.assert(
    fc.property(prospects, (prospect) => {
      const copy = prospectCopyIn(withCopy(prospect));
      if (copy === undefined) return;
      copies++;
      expect(shownFields(1, copy)).toMatchObject(listed(prospect));
    }),
    { numRuns: 1_000 },
  );
  expect(copies).toBeGreaterThan(50);
});

test("a copy of a prospect with upcoming appointments contains them, or there is no copy", () => {
  let copies = 0;
  fc.assert(
    fc.property(fc.array(appointments, { minLength: 1, maxLength: 3 }), (upcoming) => {
      const prospect = StoredProspect.parse({ ...base, id: 7, upcoming });
      const copy = prospectCopyIn(withCopy(prospect));
      if (copy === undefined) return;
      copies++;
      expect(shownFields(1, copy)).toMatchObject(listed(prospect));
    }),
    { numRuns: 300 },
  );
  expect(copies).toBeGreaterThan(30);
});

test("a long text has no copy, even if few bytes would be enough", () => {
  const [appointment = expect.fail()] = fc.sample(appointments, 1);
  const copied = copiedAppointment({ ...appointment, notes: "a".repeat(10_000) }) ?? expect.fail();
  expect(packAppointment(copied)).toBeUndefined();
});

test("a copy of a note contains what the row contains, or there is no copy", () => {
  let copies = 0;
  fc.assert(
    fc.property(notes, (note) => {
      const [createdAt, { text: indexed }] = [Date.parse(note.createdAt), indexNote(note)];
      const bytes = packNote(copiedNote(note), createdAt, indexed);
      if (bytes === undefined) return;
      copies++;
      const copy = noteIn(unpackNote(note.id, bytes, indexed), createdAt);
      expect(noteOfCopy(copy, note)).toEqual(note);
    }),
    { numRuns: 1_000 },
  );
  expect(copies).toBeGreaterThan(500);
});

test("a copy of an appointment contains what the row contains, or there is no copy", () => {
  let copies = 0;
  fc.assert(
    fc.property(appointments, (appointment) => {
      const copied = copiedAppointment(appointment) ?? expect.fail();
      expect(appointmentOfCopy(appointmentsIn(appointmentsText([copied]))[0] ?? expect.fail(), appointment)).toEqual(
        appointment,
      );
      const bytes = packAppointment(copied);
      if (bytes === undefined) return;
      copies++;
      expect(appointmentsIn(unpackAppointment(appointment.id, bytes))).toEqual([copied]);
    }),
    { numRuns: 1_000 },
  );
  expect(copies).toBeGreaterThan(500);
});

test("an appointment whose start has another form has no copy", () => {
  const [appointment = expect.fail()] = fc.sample(appointments, 1);
  expect(copiedAppointment({ ...appointment, startAt: "2030-01-01T12:00:00Z" })).toBeUndefined();
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
  expect(withCopy(StoredProspect.parse({ ...base, ...fields })).copy?.bytes.length).toBeLessThanOrEqual(most);
});

const visit = {
  ...{ type: "appointment", id: 51_234_890, companyId: 1, prospectId: 1, version: 1, title: "Roof inspection" },
  ...{ startAt: "2026-06-12T14:00:00.000Z", endAt: "2026-06-12T15:00:00.000Z", allDay: false, status: "scheduled" },
  ...{ location: null, notes: null, createdAt: "2026-06-03T09:14:25.123Z", updatedAt: "2026-06-03T09:14:25.123Z" },
  ...{ assignedToUserId: 51_230_015, createdBy: 51_230_015 },
};

test("copies of usual notes and appointments are small", () => {
  const full = { ...base, clientRecordId: "0b5a2d3e-8c41-4f0a-9d67-1f2e3d4c5b6a", upcoming: [visit] };
  const fields = { ...full, address: { ...home, formattedAddress: "123 Maple Street, Denver, CO 80202" } };
  expect(withCopy(StoredProspect.parse(fields)).copy?.bytes.length).toBeLessThanOrEqual(135);
  expect(
    packAppointment(copiedAppointment(StoredAppointment.parse(visit)) ?? expect.fail())?.length,
  ).toBeLessThanOrEqual(70);
  const dates = { createdAt: visit.createdAt, updatedAt: visit.updatedAt, createdBy: visit.createdBy, version: 1 };
  const body = "Spoke to the owner, who wants an offer for the roof before the end of the month. Call back on Monday.";
  const note = StoredNote.parse({ type: "note", id: 1, companyId: 1, prospectId: 1, body, ...dates });
  expect(packNote(copiedNote(note), Date.parse(note.createdAt), indexNote(note).text)?.length).toBeLessThanOrEqual(25);
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

test("functions of an earlier deployment find only prospects without appointments in a row of copies", async () => {
  const plain = prospectCopyIn(withCopy(StoredProspect.parse(base))) ?? expect.fail();
  const next = prospectCopyIn(withCopy(StoredProspect.parse({ ...base, id: 2, upcoming: [visit] }))) ?? expect.fail();
  const late = { ...plain, id: 3, changedAt: plain.updatedAt + 1 };
  const attached = [{ id: 4, version: 1, text: "Call again" }];
  const { items, copies } = copyItems(1, { version: 7, id: "x" }, { prospects: [plain, next, late], attached }, 0);
  const [{ bytes } = expect.fail()] = items;
  const json = decompress("the row", z.instanceof(Uint8Array).parse(bytes), (text) => Buffer.from(text).toString());
  expect(z.array(z.array(z.unknown())).parse(JSON.parse(json))).toEqual([expect.arrayContaining([plain.id])]);
  const wanted = [plain, next, late, ...attached].map(({ id, version }) => ({ id, version, copies }));
  // The type cast is safe: all rows are at hand, so the table is not read.
  const found = await readCopies({} as never, worthReading(1, wanted, items), items);
  expect([...found.prospects.values()]).toEqual([plain, next, late]);
  expect([...found.attached.values()]).toEqual(attached);
});

test.each([
  { version: 1, isFound: true },
  { version: 2, isFound: false },
])("a copy of version 1 is used for version $version: $isFound", async ({ version, isFound }) => {
  const copy = prospectCopyIn(withCopy(StoredProspect.parse(base))) ?? expect.fail();
  const { items, copies } = copyItems(1, { version: 7, id: "x" }, { prospects: [copy], attached: [] }, 0);
  const groups = worthReading(1, [{ id: copy.id, version, copies }], items);
  // The type cast is safe: all rows are at hand, so the table is not read.
  const found = await readCopies({} as never, groups, items);
  expect([...found.prospects.keys()]).toEqual(isFound ? [copy.id] : []);
});
