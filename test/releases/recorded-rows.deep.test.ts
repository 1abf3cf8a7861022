/** Tests that this code can read every row, and every part of a company index, that the last release has written. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { shapeOf } from "#shared/db/shapes.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { type RecordedSchemas, schemas, schemasOfRelease } from "../../infra/release/stored-schemas.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { lastShapes } from "./recorded.ts";

const db = faultyDynamoDb();

/** Returns a line for each schema that is gone, has a lower shape number, or has changed without a higher shape number. */
const unnumberedChanges = (released: RecordedSchemas, current: RecordedSchemas): string[] =>
  Object.entries(released).flatMap(([name, before]) => {
    const now = current[name];
    if (now === undefined) return [`rows of type ${name} have no schema any more`];
    if (now.shape < before.shape) return [`the shape of ${name} is ${now.shape}, and the release had ${before.shape}`];
    if (now.shape > before.shape || JSON.stringify(before.schema) === JSON.stringify(now.schema)) return [];
    return [`the schema of ${name} differs, but its shape is still ${now.shape}`];
  });

describe("the last release", () => {
  const { rows, companyId, schemas: released } = lastShapes();

  test("each of its rows is read", () => {
    for (const row of rows) {
      const { type } = row;
      const schema =
        typeof type === "string" && type !== "prospect" && type !== "partManifest" ? schemas[type] : undefined;
      // Locators (rows that find a record by its id) share a type but not their fields, so no single schema fits them.
      if (schema !== undefined && type !== "locator") expect(z.safeParse(schema, row).error, row.sk).toBeUndefined();
    }
    for (const row of rows) if (row.type === "prospect") expect(storedProspect(row)).toMatchObject({ id: row.id });
  });

  test("its company index agrees with its rows", async () => {
    await db.direct.batchPut(rows);
    const verdict = await verifyIndex(db.direct, indexRecords(db.direct), companyId);
    expect(verdict.faults).toEqual([]);
    expect(verdict.prospects).toBeGreaterThan(3);
    expect(verdict.segments).toBeGreaterThan(0);
  });

  test("a row has the same schema today, or its shape has a higher number", () => {
    expect(unnumberedChanges(released, schemasOfRelease())).toEqual([]);
  });
});

test("a change of a schema without a new number is found", () => {
  const current = schemasOfRelease();
  const shape = shapeOf("note");
  const changed = { ...current, note: { shape, schema: { type: "object" } } };
  expect(unnumberedChanges(current, changed)).toEqual([`the schema of note differs, but its shape is still ${shape}`]);
  expect(unnumberedChanges(current, { ...changed, note: { ...changed.note, shape: shape + 1 } })).toEqual([]);
  expect(unnumberedChanges({ note: { shape: shape + 1, schema: {} } }, changed)).toEqual([
    `the shape of note is ${shape}, and the release had ${shape + 1}`,
  ]);
  const { note: _, ...without } = current;
  expect(unnumberedChanges(current, without)).toEqual(["rows of type note have no schema any more"]);
});
