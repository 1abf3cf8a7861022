/** Tests that every kind of read refuses the rows of a later release with a clear error and does not change them. */
import { marshall } from "@aws-sdk/util-dynamodb";
import { beforeEach, expect, test } from "vitest";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { readable, shapeOf, shapes } from "#shared/db/shapes.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import { isTransient, NewerShape } from "#shared/errors.ts";
import { imageOf } from "../../infra/local/sources/stream-record.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";

const db = faultyDynamoDb();
const key = keys.territory(1, "2026-01-01T00:00:00.000Z", 1);
const newer = { ...key, type: "territory", shape: 2, version: 1, name: { first: "of a later release" } };

beforeEach(() => db.direct.batchPut([newer]));

async function all(rows: AsyncIterable<unknown>): Promise<void> {
  for await (const row of rows) expect.fail(`was read: ${JSON.stringify(row)}`);
}

const reads = [
  ["get", () => db.table.get(key)],
  ["batchGet", () => db.table.batchGet([key])],
  ["batchGet of some fields", () => db.table.batchGet([key], { fields: ["pk", "sk"] })],
  ["query", () => all(db.table.query({ pk: key.pk }))],
  ["query of some fields", () => all(db.table.query({ pk: key.pk, fields: ["pk", "sk"] }))],
  ["a failed condition", () => db.table.write({ put: { ...key, type: "territory" }, when: equals("version", 7) })],
  ["a failed transaction", () => db.table.transact([{ put: { ...key, type: "x" }, when: equals("version", 7) }])],
  ["a stream record", async () => itemOfImage(imageOf(marshall(newer)))],
] as const;

test.each(reads)("%s refuses a row of a later release and does not change it", async (_, read) => {
  const error = await read().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(NewerShape);
  expect(String(error)).toMatch(
    /the row C#1#T T#\S+ of type territory has shape 2, and this release reads shapes up to 1: a later release/,
  );
  expect(isTransient(error)).toBe(true);
  expect(await db.keysOf(key.pk)).toEqual([key]);
});

test("a row with a known number, and a row without a number, are read", () => {
  for (const [type, shape] of Object.entries(shapes)) {
    expect(readable({ type, shape })).toEqual({ type, shape });
    expect(() => readable({ type, shape: shape + 1 })).toThrow(NewerShape);
  }
  expect(readable({ type: "territory", shape: shapeOf("territory") })).toEqual({ type: "territory", shape: 1 });
  expect(readable({ type: "prospect" })).toEqual({ type: "prospect" });
  expect(() => readable({ type: "territory", shape: "1" })).toThrow(NewerShape);
  expect(readable({ shape: 1 }, "note")).toEqual({ shape: 1 });
  expect(() => readable({ shape: 2 }, "note")).toThrow(NewerShape);
  expect(() => readable({ type: "note", shape: 9, id: 7 })).toThrow(/the row with the id 7 of type note has shape 9/);
});
