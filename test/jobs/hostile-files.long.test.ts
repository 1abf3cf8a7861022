/** Tests that malicious files are refused early and with a reason, and that reading them needs only a bounded amount of memory. */
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { batchesOf, NewTags } from "#shared/jobs/import/read-file.ts";
import { encodingOf } from "#shared/prospects/csv/encoding.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

const dictionary: Dictionary = { version: 1, statuses: new Map(), tags: new Map(), users: new Map() };

const MB = 1_000_000;

/** Reads a file. Returns the numbers of rows and of bytes read, the maximum of additional memory in bytes, and the reason of a refusal. */
async function read(file: () => Iterable<Uint8Array>) {
  let rows = 0;
  let taken = 0;
  let peak = 0;
  const before = memory();
  function* counted(): Generator<Uint8Array> {
    for (const chunk of file()) {
      taken += chunk.length;
      peak = Math.max(peak, memory() - before);
      yield chunk;
    }
  }
  try {
    // The encoding is detected from the beginning of the file.
    const encoding = await encodingOf(beginningOf(file()));
    const reading = { encoding, dictionary, tags: new NewTags(dictionary), after: 0 };
    for await (const { drafts, faults } of batchesOf(counted(), reading)) rows += drafts.length + faults.length;
    return { rows, taken, peak, failure: undefined };
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    return { rows, taken, peak, failure: error.message };
  }
}

function* beginningOf(chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  let left = 2;
  for (const chunk of chunks) {
    if (left-- === 0) return;
    yield chunk;
  }
}

function memory(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Yields `piece` repeatedly, in chunks of one megabyte. All chunks together have about `total` bytes. */
function* many(piece: string, total: number, first = ""): Generator<Uint8Array> {
  if (first !== "") yield Buffer.from(first);
  const chunk = Buffer.from(piece.repeat(Math.ceil(MB / piece.length)));
  for (let sent = 0; sent < total; sent += chunk.length) yield chunk;
}

const header = "name,lat,lng\n";

test.each([
  ["1 GB of one line", () => many("a", 1_000 * MB), "more than"],
  ["1 GB of one line after a header", () => many("a", 1_000 * MB, header), "more than"],
  ["1 GB of one cell in quotes", () => many("a\n", 1_000 * MB, `${header}"`), "more than"],
  ["1 GB of columns", () => many(",", 1_000 * MB), "more than"],
  ["1 GB of columns in a row", () => many(",", 1_000 * MB, header), "more than"],
  ["200 MB of blank lines", () => many("\n", 200 * MB, header), "blank rows"],
  ["200 MB of lines of blanks", () => many(" \r\n", 200 * MB, header), "blank rows"],
  ["200 MB of lines of separators", () => many(",,,\r\n", 200 * MB, header), "blank rows"],
  ["a million columns", () => [Buffer.from(`${"c,".repeat(1_000_000)}\n1,2\n`)], "more than"],
  ["a gzip bomb", () => [gzipSync(Buffer.alloc(100 * MB))], "not text"],
  ["a zip", () => [Buffer.from("PK\u0003\u0004"), Buffer.from([0x14, 0, 0xff, 0xfe, 0x80])], "save as CSV UTF-8"],
  ["a NUL in Windows-1252", () => [Buffer.from(`${header}Jos\xe9\x00,1,2\n`, "latin1")], "not text"],
  ["a picture (PNG)", () => [Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")], "not text"],
  ["a document (PDF)", () => [Buffer.from("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "latin1")], "must name at least one"],
  ["half of a UTF-16 character", () => [Buffer.from([0xff, 0xfe, 0x61])], "not text"],
  ["NULs", () => [Buffer.alloc(100)], "must name at least one"],
  ["quotes that do not end", () => [Buffer.from(`${header}"a,1,2\n`)], "quoted cell"],
])("%s", async (_, bytes, reason) => {
  const { rows, taken, peak, failure } = await read(bytes);
  expect(failure).toContain(reason);
  expect(rows).toBe(0);
  expect(taken).toBeLessThan(20 * MB);
  expect(peak).toBeLessThan(256 * MB);
});

test("160 000 rows need no more memory than a few rows", async () => {
  const { rows, peak, failure } = await read(() => many("n,39.5,-105\n", 2 * MB, header));
  expect(failure).toBeUndefined();
  expect(rows).toBeGreaterThan(160_000);
  expect(peak).toBeLessThan(256 * MB);
});

test("a blank line after each row is accepted", async () => {
  const { rows, failure } = await read(() => many("n,39.5,-105\n\n", 2 * MB, header));
  expect(failure).toBeUndefined();
  expect(rows).toBeGreaterThan(150_000);
});
