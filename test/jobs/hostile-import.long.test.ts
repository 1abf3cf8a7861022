/** The largest line that an upload is read for, and one of a gigabyte: memory is that of a small file. */
import { expect, test } from "vitest";
import { HEAP_MB, importOneLine } from "./uploaded-line.ts";

const MB = 2 ** 20;

test.each([
  ["as long as a file may be", 199, "characters"],
  ["of a gigabyte", 1_000, "bytes"],
])("one line %s: the import fails and says why, and nothing of it is left", async (_, megabytes, reason) => {
  const { told, left, failed, peakBytes } = await importOneLine(megabytes);
  expect(told).toMatchObject({ state: "failed", imported: 0, written: 0 });
  expect(told.failure).toContain(reason);
  expect(left).toEqual([]);
  expect(failed).toBe(0);
  expect(peakBytes).toBeLessThan(HEAP_MB * MB);
});
