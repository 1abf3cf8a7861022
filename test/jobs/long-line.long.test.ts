/** Tests the import of a file with one very long line. It must fail with a reason, leave no data behind and need little memory. */
import { expect, test } from "vitest";
import { HEAP_MB, importOneLine } from "./one-line-import.ts";

const MB = 2 ** 20;

test("the import of a line of 20 MB fails with a reason and leaves nothing", async () => {
  const { summary, leftovers, failed, peakBytes } = await importOneLine(20);
  expect(summary).toMatchObject({ state: "failed", imported: 0, written: 0 });
  expect(summary.failure).toContain("characters");
  expect(leftovers).toEqual([]);
  expect(failed).toBe(0);
  expect(peakBytes).toBeLessThan(HEAP_MB * MB);
});
