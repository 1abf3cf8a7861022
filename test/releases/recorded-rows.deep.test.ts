/** Tests that this code can read every row, message and part of a search index that the last release has written. */
import { zstdDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { decodeGeo, decodeMain, decodeText, encodeSegment, rowsOf } from "#shared/company-index/segment.ts";
import { decodeNotes, decodeOverrides, encodeNotes, encodeOverrides } from "#shared/company-index/versions.ts";
import { shapeOf } from "#shared/db/shapes.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { schemas, schemasOfRelease, unnumberedChanges } from "../../infra/release/stored-schemas.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { alive, lastShapes } from "./recorded.ts";

const db = faultyDynamoDb();
const bytesOf = (value: unknown): Uint8Array =>
  value instanceof Uint8Array ? value : expect.fail(`${String(value)} is not binary`);

describe("the last release", () => {
  const { rows, companyId, schemas: released, messages } = lastShapes();
  const ofType = (type: string) => rows.filter((row) => row.type === type);

  test("each of its rows is read", () => {
    for (const row of rows) {
      const { type } = row;
      const schema =
        typeof type === "string" && type !== "prospect" && type !== "runManifest" ? schemas[type] : undefined;
      // A locator is a row that finds a record by its id. All locators have the type `locator`, but those of notes and of appointments have
      // different fields. No single schema fits them, so they are not checked.
      if (schema !== undefined && type !== "locator") expect(z.safeParse(schema, row).error, row.sk).toBeUndefined();
    }
    for (const row of ofType("prospect")) expect(storedProspect(row)).toMatchObject({ id: row.id });
  });

  test("each of its messages is read", () => {
    for (const [name, sent] of Object.entries(messages)) {
      for (const message of sent) expect(z.safeParse(schemas[name] ?? z.never(), message).error, name).toBeUndefined();
    }
    const names = Object.keys(schemas).filter((name) => name.startsWith("message/"));
    expect(Object.keys(messages).sort()).toEqual(names.sort());
  });

  test("its company index agrees with its rows", async () => {
    await db.direct.batchPut(alive(rows));
    const verdict = await verifyIndex(db.direct, indexRecords(db.direct), companyId);
    expect(verdict.faults).toEqual([]);
    expect(verdict.prospects).toBeGreaterThan(3);
    expect(verdict.segments).toBeGreaterThan(0);
  });

  test("its pieces of the index are written in the same form today, unless the format has a new number", () => {
    const pieces = Map.groupBy(ofType("indexPart"), ({ pk }) => pk);
    expect(pieces.size).toBeGreaterThan(0);
    for (const [pk, parts] of pieces) {
      const piece = (name: string) => bytesOf(parts.find(({ sk }) => sk === `${name}#0`)?.bytes);
      if (parts.some(({ sk }) => sk === "main#0")) {
        const stored = { main: piece("main"), geo: piece("geo"), text: piece("text") };
        const columns = {
          main: decodeMain(pk, stored.main),
          geo: decodeGeo(pk, stored.geo),
          text: decodeText(pk, stored.text),
        };
        const again = encodeSegment([...rowsOf(columns)]);
        for (const name of ["main", "geo", "text"] as const) {
          expect(zstdDecompressSync(again[name])).toEqual(zstdDecompressSync(stored[name]));
        }
      }
    }
    for (const run of ofType("runManifest")) {
      if (run.fewOverrides === undefined) continue;
      const { prospects, notes } = decodeOverrides("overrides", bytesOf(run.fewOverrides));
      const listed = ({ ids, versions }: typeof prospects) =>
        [...ids].map((id, i) => ({ id, version: versions[i] ?? 0 }));
      const again = encodeOverrides(listed(prospects), listed(notes));
      expect(zstdDecompressSync(again)).toEqual(zstdDecompressSync(bytesOf(run.fewOverrides)));
    }
    expect(decodeNotes("notes", encodeNotes([]))).toEqual([]);
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
