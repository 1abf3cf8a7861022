/**
 * Tests that five CI runs with consecutive draws execute each expensive test file exactly once. The draw of a run is a number that selects
 * the files that this run executes.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { leftOut } from "./harness/rotation.ts";

test("five runs with consecutive draws leave out each expensive file four times, and each of these files exists", () => {
  const times = Map.groupBy([6, 7, 8, 9, 10].flatMap(leftOut), (file) => file);
  for (const [file, runs] of times) {
    expect(existsSync(join(import.meta.dirname, "..", file)), file).toBe(true);
    expect(runs, file).toHaveLength(4);
  }
});
