/** Tests how much memory an import needs for the keys of a file. A key is the value by which a row matches a prospect. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { FileKeys } from "#shared/jobs/import/match.ts";
import { sized } from "../harness/tier.ts";

/** Returns the bytes of memory that are in use after a garbage collection. */
function reachableBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  // The first collection frees array buffers in the background. The second collection waits until they are freed.
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test("the keys of a million rows take at most 120 MB", { tags: "sized" }, () => {
  const rows = sized({ short: 100_000, wide: 1_000_000 });
  const before = reachableBytes();
  const fileKeys = new FileKeys("sourceId");
  for (let row = 2; row < rows + 2; row++) fileKeys.add(row, `source-${row % 1_000 === 0 ? 7 : row}`);
  for (let id = 1; id <= 1_000; id++) fileKeys.meet(id, `source-${id + 1}`);
  fileKeys.meet(1_001, "source-3");
  const matches = fileKeys.matches();
  const used = reachableBytes() - before;
  expect(used).toBeLessThan(120 * rows);
  expect(matches.of(2)).toEqual({ kind: "one", id: 1 });
  expect(matches.of(3)).toEqual({ kind: "several" });
  expect(matches.of(1_000)).toEqual({ kind: "repeated", row: 7 });
  expect(matches.of(5_001)).toEqual({ kind: "none" });
});
