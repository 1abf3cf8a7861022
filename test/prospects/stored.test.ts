/** Tests that a prospect does not change when it is stored and read again, and that damaged rows are rejected. */
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Address } from "#shared/prospects/address.ts";
import {
  bulkJobOf,
  pageProspect,
  prospectItem,
  type StoredProspect,
  storedProspect,
} from "#shared/prospects/stored.ts";
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

test.each(damaged)("a row with %s is rejected", (_, fields) => {
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

test("a missing row is rejected", () => {
  expect(() => storedProspect(undefined)).toThrow();
});
