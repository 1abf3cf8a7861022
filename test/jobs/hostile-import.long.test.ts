/**
 * Tests that importing a file with one extremely long line needs no more memory than importing a small file. The test imports two such
 * files: one is as large as a file may be, and the other is a gigabyte large.
 */
import { expect, test } from "vitest";
import { HEAP_MB, importOneLine } from "./one-line-import.ts";

const MB = 2 ** 20;

test.each([
  ["as long as a file may be", 199, "characters"],
  ["of a gigabyte", 1_000, "bytes"],
])("the import of one line %s fails with a reason and leaves nothing", async (_, megabytes, reason) => {
  const { summary, leftovers, failed, peakBytes } = await importOneLine(megabytes);
  expect(summary).toMatchObject({ state: "failed", imported: 0, written: 0 });
  expect(summary.failure).toContain(reason);
  expect(leftovers).toEqual([]);
  expect(failed).toBe(0);
  expect(peakBytes).toBeLessThan(HEAP_MB * MB);
});
