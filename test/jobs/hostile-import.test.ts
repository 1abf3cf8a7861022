/** A line that does not end, through the whole work on an upload: refused with a reason, nothing left, in little memory. */
import { expect, test } from "vitest";
import { HEAP_MB, importOneLine } from "./uploaded-line.ts";

const MB = 2 ** 20;

test("20 MB of one line: the import fails and says why, and nothing of it is left", async () => {
  const { told, left, failed, peakBytes } = await importOneLine(20);
  expect(told).toMatchObject({ state: "failed", imported: 0, written: 0 });
  expect(told.failure).toContain("characters");
  expect(left).toEqual([]);
  expect(failed).toBe(0);
  expect(peakBytes).toBeLessThan(HEAP_MB * MB);
});
