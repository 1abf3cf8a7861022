/** Tests that this code can read every row, and every part of a company index, that the last release has written. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { schemas, schemasOfRelease } from "../../infra/release/stored-schemas.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { present } from "../harness/shapes.ts";
import { lastShapes } from "./recorded.ts";

const db = faultyDynamoDb();

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

  const current = schemasOfRelease();
  test.each(Object.entries(released))(
    "a row of type %s has a schema that is unchanged or has a higher number",
    (type, before) => {
      const { shape, schema } = present(current[type]);
      expect(shape).toBeGreaterThanOrEqual(before.shape);
      if (shape === before.shape) expect(JSON.stringify(schema)).toBe(JSON.stringify(before.schema));
    },
  );
});
