/** Tests that a prospect does not change when it is stored and read, that pages have all its fields, and that damaged rows are rejected. */
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as keys from "#shared/db/keys.ts";
import { shapeOf } from "#shared/db/shapes.ts";
import { checked } from "#shared/http/endpoint.ts";
import type { Address } from "#shared/prospects/address.ts";
import { ListedProspect } from "#shared/prospects/list/list.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import {
  bulkJobOf,
  pageProspect,
  prospectItem,
  type StoredAppointment,
  StoredProspect,
  storedProspect,
} from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { prospectRow } from "../harness/prospect-row.ts";

/** Returns the item as a read from the table returns it after a write. */
const throughTable = (item: object): Record<string, unknown> =>
  unmarshall(marshall(item, { removeUndefinedValues: true }));

const id = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const time = fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString());
const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });

const address: fc.Arbitrary<Address> = fc.record({
  id,
  address1: fc.string(),
  address2: orNull(fc.string()),
  city: fc.string(),
  state: fc.string(),
  zip: fc.string(),
  formattedAddress: orNull(text),
});
const prospect: fc.Arbitrary<StoredProspect> = fc
  .record(
    {
      id,
      name: orNull(text),
      phoneNumber: orNull(text),
      emailAddress: orNull(text),
      lat: orNull(fc.double({ min: -90, max: 90, noNaN: true }).map((degrees) => degrees + 0)),
      lng: orNull(fc.integer({ min: -180, max: 180 })),
      address: orNull(address),
      statusId: orNull(id),
      pastStatusChanges: fc.nat(),
      agendaUntil: time,
      appointments: fc.nat(9),
      later: fc.array(fc.tuple(id, fc.nat(), fc.nat(), fc.nat()), { maxLength: 2 }),
      assignedToUserId: orNull(id),
      tagIds: fc.array(id, { maxLength: 3 }),
      customFieldData: orNull(fc.json()),
      createdAt: time,
      version: fc.integer({ min: 1, max: 1_000 }),
      deletedAt: time,
      importId: fc.nat().map(String),
      bulk: fc.record({ jobId: id, version: id, events: fc.constantFrom("summary", "each", "none") }),
    },
    { requiredKeys: [] },
  )
  .map((fields) => prospectRow(fields));

test("a prospect that is stored and read again is unchanged, whether it is validated or not", () => {
  fc.assert(
    fc.property(prospect, (row) => {
      const item = throughTable(prospectItem(row));
      expect(storedProspect(item)).toEqual(row);
      expect(pageProspect(item)).toEqual(row);
    }),
    { numRuns: 500 },
  );
});

test("a bulk job wrote a version of a prospect only if the mark in the row names this version", () => {
  const bulk = { jobId: 7, version: 3, events: "each" } as const;
  expect(bulkJobOf(prospectRow({ bulk, version: 3 }))).toEqual(bulk);
  expect(bulkJobOf(prospectRow({ bulk, version: 4 }))).toBeUndefined();
  expect(bulkJobOf(prospectRow({ version: 3 }))).toBeUndefined();
});

const damaged = [
  ["fields that are no JSON", "{"],
  ["a JSON array instead of fields", "[]"],
  ["a field of a wrong type", JSON.stringify({ ...prospectRow(), name: 5 })],
  ["no creation time", "{}"],
] as const;

test.each(damaged)("a row with %s is rejected, and so is a missing row", (_, fields) => {
  expect(() => storedProspect(undefined)).toThrow();
  expect(() => storedProspect({ ...prospectItem(prospectRow()), fields })).toThrow();
});

test("a page validates the separate attributes of each row", () => {
  const wrong = [
    { type: "note" },
    { id: 0 },
    { id: "1" },
    { companyId: undefined },
    { assignedToUserId: 1.5 },
    { version: "1" },
    { version: 0.5 },
    { deletedAt: "yesterday" },
    { importId: 7 },
    { fields: 7 },
    { fields: undefined },
  ];
  for (const attributes of wrong) {
    expect(() => pageProspect({ ...prospectItem(prospectRow()), ...attributes })).toThrow();
  }
});

const WRITTEN = "2026-01-02T00:00:00.000Z";
const dated = { version: 3, createdAt: WRITTEN, updatedAt: WRITTEN };
const status = { id: 2, value: "New", color: "#3B82F6" };

const appointment: StoredAppointment = {
  type: "appointment",
  id: 9,
  companyId: 4,
  prospectId: 5,
  title: "Visit",
  startAt: WRITTEN,
  endAt: null,
  allDay: false,
  status: "scheduled",
  location: null,
  notes: null,
  assignedToUserId: 7,
  createdBy: 7,
  importId: "import",
  occurredAt: WRITTEN,
  ...dated,
};

const place = { address1: "1 Elm St", address2: null, city: "Denver", state: "CO", zip: "80202" };

/** A prospect with a value in every field. Only `deletedAt` is missing, because the prospect is not deleted. */
const full: Required<Omit<StoredProspect, "deletedAt">> = {
  type: "prospect",
  id: 5,
  companyId: 4,
  name: "Ann",
  phoneNumber: "1",
  secondaryPhoneNumber: "2",
  emailAddress: "a@b.test",
  lat: 1.5,
  lng: -2,
  address: { id: 8, ...place, formattedAddress: "by hand" },
  statusId: 2,
  lastStatusChange: {
    id: 6,
    status,
    previousStatus: null,
    changedBy: 7,
    source: "api",
    createdAt: WRITTEN,
    version: 3,
  },
  pastStatusChanges: 1,
  upcoming: [appointment],
  later: [[9, 5, 7, 0]],
  agendaUntil: WRITTEN,
  appointments: 1,
  appointmentsChangedAt: 5,
  assignedToUserId: 7,
  assignedByUserId: 7,
  assignedAt: WRITTEN,
  pastAssignments: [0, 7, 1],
  tagIds: [3],
  source: "form",
  sourceId: "s1",
  sourceCreatedAt: WRITTEN,
  customFieldData: '{"a":[1]}',
  createdBy: 7,
  updatedBy: 7,
  clientRecordId: "record",
  changedByImport: "import",
  importId: "import",
  bulk: { jobId: 1, version: 3, events: "each", before: { statusId: 2 }, after: { tagIds: [3], deletedAt: null } },
  ...dated,
};

const user = { type: "user", id: 7, companyId: 4, sub: "s", email: "u@b.test", firstName: "U", lastName: "V" } as const;
const dictionary: Dictionary = {
  version: 1,
  statuses: new Map([[2, { ...status, type: "status", sortOrder: 1, isActive: true, ...dated }]]),
  tags: new Map([[3, { id: 3, value: "Solar", color: "#2563EB", type: "tag", ...dated }]]),
  users: new Map([[7, { ...user, role: "sales", permissions: [], isActive: true, ...dated }]]),
};

describe("the rows of a page", () => {
  const db = faultyDynamoDb();
  /** Attributes of a stored row that are no fields of a prospect. */
  const others = { writeId: "w", notesVersion: 2, notesChangedAt: 3 };

  /** The service reads few rows by `BatchGetItem`, and many rows by one Query. */
  const reads = [
    { count: 2, calls: ["BatchGetItem"] },
    { count: 40, calls: ["Query"] },
  ] as const;

  test.each(reads)("have all fields but the import: $count rows", async ({ count, calls }) => {
    const companyId = 200 + count;
    const rows = Array.from({ length: count }, (_, i) => {
      const row = i % 3 === 0 ? full : prospectRow(i % 3 === 1 ? {} : { ...full, deletedAt: WRITTEN });
      return { ...row, companyId, id: i + 1 };
    });
    await db.direct.batchPut(
      rows.map((row) => ({ ...keys.prospect(companyId, row.id), ...prospectItem(row), ...others })),
    );
    db.plan(() => ({ kind: "pass" }));
    const found = await rowsAtLeast(db.table, companyId, 1, { refs: rows });
    expect(db.calls).toEqual(calls);
    for (const row of rows) expect(found.get(row.id)).toEqual({ ...row, importId: undefined });
  });

  test.each([1, 40])("of a later release are refused: %i rows", async (count) => {
    const companyId = 300 + count;
    const rows = Array.from({ length: count }, (_, i) => ({ ...full, companyId, id: i + 1 }));
    const shape = shapeOf("prospect") + 1;
    await db.direct.batchPut(
      rows.map((row) => ({
        ...keys.prospect(companyId, row.id),
        ...prospectItem(row),
        ...(row.id === count && { shape }),
      })),
    );
    const refused = /the row with the id \d+ of type prospect has shape \d/;
    await expect(rowsAtLeast(db.table, companyId, 1, { refs: rows })).rejects.toThrow(refused);
  });
});

const filled = fc
  .subarray(Object.keys(full).filter((name) => !["type", "id", "companyId", "version"].includes(name)))
  .map((names) => prospectRow(Object.fromEntries(Object.entries(full).filter(([name]) => names.includes(name)))));

test("the items of a page are as their schema would parse them: no field is removed or moved", () => {
  fc.assert(
    fc.property(filled, fc.boolean(), (stored, isBooked) => {
      const upcoming = isBooked ? appointment : undefined;
      for (const read of [stored, StoredProspect.parse(stored)]) {
        const item = presentProspect(read, upcoming, dictionary);
        expect(JSON.stringify(item)).toBe(JSON.stringify(checked(ListedProspect, item)));
      }
    }),
    { numRuns: 300 },
  );
});
