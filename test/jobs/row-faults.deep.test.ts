/** Tests that the errors of an import's rows name the faulty values, and fit into one answer and one row of the table. */
import { zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { packed } from "#shared/db/packed.ts";
import { answerBytes } from "#shared/http/answer.ts";
import * as limits from "#shared/limits.ts";
import { importColumns } from "#shared/prospects/csv/format.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { sized } from "../harness/tier.ts";
import { readFile } from "./read-file.ts";

const empty: Dictionary = { version: 1, statuses: new Map(), tags: new Map(), users: new Map() };

const quoted = (cell: string): string => `"${cell.replaceAll('"', '""')}"`;
const fileOf = (rows: readonly (readonly string[])[]): Uint8Array =>
  Buffer.from([importColumns, ...rows].map((cells) => cells.map(quoted).join(",")).join("\n"));

test("a fault is short, and the characters of its values need no escape", async () => {
  const cell = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }),
    fc.constantFrom("", "1e999", "-91", "x".repeat(300), '"'.repeat(300), "\\", "\u0001", "=1+1", "a,b;c,d"),
    fc.array(fc.string({ maxLength: 5 }), { maxLength: 200 }).map((tags) => tags.join(";")),
  );
  const row = fc.array(cell, { minLength: 1, maxLength: importColumns.length + 1 });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 5 }), async (rows) => {
      const { faults: errors } = await readFile(fileOf([...rows, ["too few cells"]]), empty);
      for (const { message } of errors) {
        // JSON escapes no character of a message. In an answer, a message therefore needs only its own bytes and two quotation marks.
        expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThanOrEqual(limits.rowFault + 2);
        // "Invalid input" is the validation library's default text. Every schema must have its own text instead.
        expect(message).not.toContain("Invalid input");
      }
    }),
  );
});

test("a row with too many faults counts those that do not fit", async () => {
  const long = "x".repeat(300);
  const tags = Array.from({ length: 2_000 }, (_, i) => `${i},`).join(";");
  const cells: Partial<Record<string, string>> = {
    ...{ name: long, phone: long, email: long, source: long, tags },
    ...{ lat: "x", lng: "91°", status: "?", assignedTo: "?" },
  };
  const { faults: errors } = await readFile(fileOf([importColumns.map((column) => cells[column] ?? "")]), empty);
  const [{ message } = expect.fail("no error")] = errors;
  const parts = message.split("; ");
  const more = Number(/^and (\d+) more$/.exec(parts.at(-1) ?? "")?.[1]);
  expect(new Set(parts).size).toBe(parts.length);
  // The row has ten errors: nine columns are invalid, and it has neither an address nor coordinates.
  expect(parts.length - 1 + more).toBe(10);
});

test("a fault names the value, and the similar name of an active status or user", async () => {
  const dated = { createdAt: "", updatedAt: "" };
  const status = { type: "status", companyId: 1, color: "#000000", sortOrder: 1, version: 1, ...dated } as const;
  const values = ["Interested", "Not Home", "Old"];
  const statuses = new Map(values.map((value, id) => [id, { ...status, id, value, isActive: value !== "Old" }]));
  const faultsOf = async (rows: string) =>
    (await readFile(Buffer.from(`status,lat,lng\n${rows}`), { ...empty, statuses })).faults.map(
      ({ message }) => message,
    );
  const fault = "status: must be the value of an active status, but is";
  expect(await faultsOf(`Intrested,1,2\nOld,1,2\n${"ab".repeat(30)},1,2\nx,91,north`)).toEqual([
    `${fault} 'Intrested' (the nearest is 'Interested')`,
    `${fault} 'Old'`,
    `${fault} '${"ab".repeat(20)}...'`,
    "lng: must be a number, but is 'north'; status: must be the value of an active status, but is 'x'; lat: must be a latitude from -90 to 90 degrees (a longitude may be in its place), but is '91'",
  ]);
});

/** The short test reads a fifth of the rows of the largest file. The compressed faults then have a fifth of the size. */
const SHARE = sized({ short: 5, wide: 1 });
const ROWS = limits.importRows / SHARE;

test("different values in all rows do not make the row of the import too large", { tags: "sized" }, async () => {
  const next = randomSequence(1);
  const letter = () => String.fromCodePoint(0x4e00 + Math.floor(next() * 20_000));
  const value = () => Array.from({ length: 30 }, letter).join("");
  const rows = Array.from({ length: ROWS }, () => `${value()},${value()},x`);
  const { faults } = await readFile(Buffer.from(`status,assignedTo,lat\n${rows.join("\n")}`), empty);
  expect(faults).toHaveLength(ROWS);
  expect(packed(faults).length).toBeLessThan((400 * 1024 * 3) / 4 / SHARE);
});

test("the most varied faults of all rows fit into an answer and a row of the table", { tags: "sized" }, async () => {
  const next = randomSequence(1);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)] ?? expect.fail("no value");
  const bad: Partial<Record<string, readonly string[]>> = {
    phone: ["x".repeat(51)],
    email: ["q", "@"],
    lat: ["91", "x", "-91"],
    lng: ["181", "x", "-181"],
    status: ["z"],
    assignedTo: ["z"],
    assignedToEmail: ["z"],
    tags: ["a,", "x".repeat(101)],
    source: ["x".repeat(101)],
  };
  const rows = Array.from({ length: ROWS }, () =>
    next() < 0.1
      ? `${",".repeat(Math.floor(next() * 1_000))}x`
      : importColumns.map((column) => (next() < 0.6 ? quoted(pick(bad[column] ?? [""])) : "")).join(","),
  );
  // Blank lines make the row numbers longer and irregular. The stored errors then compress as badly as in the worst case.
  const file = Buffer.from(
    [importColumns.join(","), ...rows].map((row) => row + "\n".repeat(1 + Math.floor(next() * 9))).join(""),
  );
  expect(file.length).toBeLessThanOrEqual(limits.importBytes);
  const { faults: errors } = await readFile(file, empty);
  expect(errors).toHaveLength(ROWS);
  const bytes = (400 * 1024) / SHARE;
  expect(packed(errors).length).toBeLessThan(bytes / 2);
  expect(zstdCompressSync(JSON.stringify({ errors })).length).toBeLessThan(bytes / 2);
  const longest = { row: limits.importRows + 2 * limits.csvBlankLines, message: "x".repeat(limits.rowFault) };
  const all = JSON.stringify({ errors: Array.from({ length: limits.importRows }, () => longest) });
  expect(answerBytes(all)).toBeLessThan(limits.bufferedAnswerBytes / 2);
});
