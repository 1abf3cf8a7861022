/** Tests which encoding a CSV file has, and that an error names the row and the column of an invalid byte. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { decoded, encodingOf } from "#shared/prospects/csv/encoding.ts";
import { type CsvRow, openCsv } from "#shared/prospects/csv/read.ts";
import { sized } from "../harness/tier.ts";

const rowsOf = async (bytes: readonly Uint8Array[]): Promise<CsvRow[]> =>
  Array.fromAsync((await openCsv(decoded(bytes, await encodingOf(bytes)))).rows);

/** Counts the characters that have several bytes, and the invalid bytes. It calls the decoder of Node.js for one character at a time. */
function utf8Of(bytes: Uint8Array): { characters: number; invalid: number } {
  let [characters, invalid] = [0, 0];
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((size) => {
      const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(at, at + size));
      return Buffer.from(text).equals(bytes.subarray(at, at + size)) && [...text].length === 1;
    });
    if (length === undefined) invalid++;
    else if (length > 1) characters++;
    at += length ?? 1;
  }
  return { characters, invalid };
}

test("an invalid byte of UTF-8 is refused with its row and the header of its column, wherever the bytes are cut", async () => {
  const parts = ['\uFEFFNaïve header,City\r\n\uFFFDBo,x\r\n\r\n"a\nb",', "é,Denver\r\nCy,y\r\n"];
  const bytes = Buffer.concat([Buffer.from(parts[0] ?? ""), Buffer.of(0xe2, 0x82), Buffer.from(parts[1] ?? "")]);
  for (const chunks of [[bytes], [...bytes].map((byte) => Buffer.of(byte)), [bytes.subarray(3)]]) {
    await expect(rowsOf(chunks)).rejects.toThrow('Row 4 has a byte in the column "City" that is not valid in UTF-8.');
  }
  const [inHeader, beyond] = ["name,C\xe9\nx", "name\nx,\xe9"].map((text) =>
    Buffer.from(`\xef\xbb\xbf${text}`, "latin1"),
  );
  await expect(rowsOf([inHeader ?? bytes])).rejects.toThrow('Row 1 has a byte in the column "C');
  await expect(rowsOf([beyond ?? bytes])).rejects.toThrow("Row 2 has a byte in column 2 that");
});

test("a file with as many invalid bytes as UTF-8 characters is not UTF-8", { tags: "sized" }, async () => {
  const unit = fc.oneof(
    fc.string({ unit: "binary", maxLength: 3 }).map((text) => Buffer.from(text.toWellFormed())),
    fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(unit, { maxLength: 8 }), fc.integer({ min: 1, max: 5 }), async (units, size) => {
      const bytes = Buffer.concat([Buffer.from("name\n"), ...units]);
      const { characters, invalid } = utf8Of(bytes);
      const encoding = invalid === 0 || characters > invalid ? "utf-8" : "windows-1252";
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      expect(await encodingOf(chunks)).toBe(encoding);
    }),
    { numRuns: sized({ short: 30, wide: 500 }) },
  );
});

test("a final 0x1A ends the file", async () => {
  for (const [bytes, cells] of [
    [Buffer.from("name\r\nBo\r\n\x1A"), ["Bo"]],
    [Buffer.from("name\nJos\xe9\x1A", "latin1"), ["José"]],
    [Buffer.from("\uFEFFname\nBo\n\x1A", "utf16le"), ["Bo"]],
    [Buffer.from("name\nB\x1Ao\n\x1A"), ["B\x1Ao"]],
  ] as const) {
    for (const chunks of [[bytes], [...bytes].map((byte) => Buffer.of(byte))]) {
      expect((await rowsOf(chunks)).slice(1).map((row) => row.cells)).toEqual([cells]);
    }
  }
});

test.each([
  ["UTF-8", Buffer.from("name\nJosé"), "utf-8"],
  ["ASCII", Buffer.from("name"), "utf-8"],
  ["nothing", Buffer.alloc(0), "utf-8"],
  ["a character that is cut at the end", Buffer.from("name\né").subarray(0, 6), "windows-1252"],
  ["UTF-8 with one other byte at the end", Buffer.concat([Buffer.from("é".repeat(9_999)), Buffer.of(0xe9)]), "utf-8"],
  ["a mark of UTF-8 before other bytes", Buffer.from("\xef\xbb\xbfname\nJos\xe9", "latin1"), "utf-8"],
  ["as many valid characters as invalid bytes", Buffer.from("name\n\xc3\xa9\xe9", "latin1"), "windows-1252"],
  ["a mark of UTF-16", Buffer.from("\uFEFFn", "utf16le"), "utf-16le"],
  ["UTF-16 without a mark", Buffer.from("n", "utf16le").swap16(), "utf-16be"],
])("%s is found as %s", async (_, bytes, encoding) => {
  expect(await encodingOf([bytes])).toBe(encoding);
  expect(await encodingOf([...bytes].map((byte) => Buffer.of(byte)))).toBe(encoding);
});
