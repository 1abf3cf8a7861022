/** Tests that a bulk job over a million prospects is created, runs and shows its results within a heap of 256 MB. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { setStage } from "../bench/stage.ts";
import { startBenchTable } from "../bench/table.ts";

const COUNT = 1_000_000;
const HEAP_MB = 256;
const RUN_MS = 30_000;
const Peaks = z.object({ heapMb: z.int(), rssMb: z.int() });
const Measured = z.object({ creation: Peaks, run: Peaks, results: Peaks, lines: z.int() });

test("a job over a million prospects needs a heap of at most 256 MB", { timeout: 3_600_000 }, async () => {
  const table = await startBenchTable();
  const folder = mkdtempSync(join(tmpdir(), "canvassing-bulk-heap-"));
  try {
    const { company, clock } = await setStage(table, COUNT);
    const { id: companyId, ownerId } = company;
    const task = { endpoint: table.endpoint, companyId, ownerId, now: clock.ms, count: COUNT, folder, runMs: RUN_MS };
    const script = join(import.meta.dirname, "bulk-heap-process.ts");
    const flags = [`--max-old-space-size=${HEAP_MB}`, script, JSON.stringify(task)];
    // The process ends with an error if it needs a larger heap.
    const measured = Measured.parse(JSON.parse((await promisify(execFile)(process.execPath, flags)).stdout));
    console.log(JSON.stringify(measured));
    expect(measured.lines).toBe(COUNT);
    for (const { heapMb } of [measured.creation, measured.run, measured.results]) expect(heapMb).toBeLessThan(HEAP_MB);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await table.stop();
  }
});
