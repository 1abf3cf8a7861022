/**
 * Tests that a bulk job over a million prospects, and then its undo, run to their end within a heap of 256 MB. Together they write a
 * million rows twice, which takes hours. The environment variable BULK_RECORDS sets another number of prospects.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { updateProspect } from "#shared/prospects/write.ts";
import { makeProspect } from "../bench/prospects.ts";
import { type Stage, setStage } from "../bench/stage.ts";
import { type BenchTable, startBenchTable } from "../bench/table.ts";

const COUNT = Number(process.env.BULK_RECORDS ?? 1_000_000);
const HEAP_MB = 256;
/** Number of rows that the test writes or reads in one step. */
const TOGETHER = 5_000;
/** Between the job and its undo, a user changes the status of every thousandth prospect. */
const CHANGED_ONE_IN = 1_000;

const Peaks = z.object({ heapMb: z.int(), rssMb: z.int(), seconds: z.int() });
const count = z.int();
const Counts = z.object({ total: count, changed: count, unchanged: count, skipped: count, failed: count });
const Measured = z.object({
  id: z.int(),
  state: z.string(),
  counts: Counts,
  creation: Peaks,
  run: Peaks,
  results: Peaks,
  lines: z.int(),
});
type Measured = z.infer<typeof Measured>;

/**
 * Flushes the company's search index again and again, until the returned function is called. In the service, the function that reads the
 * table's stream does this.
 */
function flushing(table: BenchTable, { clock, company }: Stage) {
  const context = contextOn(table.open(), clock);
  let isStopped = false;
  const work = async (): Promise<void> => {
    while (!isStopped) {
      await flush(context, company.id);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  };
  const running = work();
  return async (): Promise<void> => {
    isStopped = true;
    await running;
  };
}

async function inSmallHeap(table: BenchTable, stage: Stage, folder: string, work: object): Promise<Measured> {
  const { company, clock } = stage;
  const task = {
    endpoint: table.endpoint,
    companyId: company.id,
    ownerId: company.ownerId,
    now: clock.ms,
    folder,
    work,
  };
  const script = join(import.meta.dirname, "bulk-heap-process.ts");
  const flags = [`--max-old-space-size=${HEAP_MB}`, script, JSON.stringify(task)];
  const stop = flushing(table, stage);
  // The process ends with an error if it needs a larger heap.
  const { stdout } = await promisify(execFile)(process.execPath, flags).finally(stop);
  const measured = Measured.parse(JSON.parse(stdout));
  console.log(JSON.stringify(measured));
  for (const { heapMb } of [measured.creation, measured.run, measured.results]) expect(heapMb).toBeLessThan(HEAP_MB);
  expect(measured.lines).toBe(measured.counts.total);
  clock.ms += 24 * 3_600_000;
  return measured;
}

/**
 * Returns the number of prospects that do not have the status `wanted(at)`. `at` is the position of a prospect in the company, counted from
 * 0.
 */
async function wrongStatuses({ context, company }: Stage, wanted: (at: number) => number | null): Promise<number> {
  let wrong = 0;
  for (let first = 0; first < COUNT; first += TOGETHER) {
    const ids = Array.from({ length: Math.min(TOGETHER, COUNT - first) }, (_, i) => company.firstId + first + i);
    const items = await context.table.batchGet(ids.map((id) => keys.prospect(company.id, id)));
    expect(items).toHaveLength(ids.length);
    for (const item of items) {
      const { id, statusId } = storedProspect(item);
      if (statusId !== wanted(id - company.firstId)) wrong++;
    }
  }
  return wrong;
}

test("a job over a million prospects and its undo need a heap of at most 256 MB", {
  timeout: 12 * 3_600_000,
}, async () => {
  const table = await startBenchTable();
  const folder = mkdtempSync(join(tmpdir(), "canvassing-bulk-heap-"));
  try {
    const stage = await setStage(table, COUNT);
    const { company, caller, context } = stage;
    for (let rows = TOGETHER; rows < COUNT + TOGETHER; rows += TOGETHER) await stage.fillFirst(Math.min(rows, COUNT));
    const [wanted = 0, other = 0] = company.statuses.map(({ id }) => id);
    const before = (at: number): number | null => makeProspect(company, at).prospect.statusId;
    let unchanged = 0;
    for (let at = 0; at < COUNT; at++) if (before(at) === wanted) unchanged++;

    const job = await inSmallHeap(table, stage, folder, { statusId: wanted, count: COUNT });
    expect(job).toMatchObject({
      state: "completed",
      counts: { total: COUNT, changed: COUNT - unchanged, unchanged, skipped: 0, failed: 0 },
    });
    expect(await wrongStatuses(stage, () => wanted)).toBe(0);

    const isTouched = (at: number): boolean => at % CHANGED_ONE_IN === 0;
    let skipped = 0;
    for (let at = 0; at < COUNT; at += CHANGED_ONE_IN) {
      await updateProspect(context, caller, company.firstId + at, { currentStatusId: other });
      if (before(at) !== wanted) skipped++;
    }
    const undo = await inSmallHeap(table, stage, folder, { undo: job.id });
    expect(undo).toMatchObject({
      state: "completed",
      counts: { total: COUNT - unchanged, changed: COUNT - unchanged - skipped, unchanged: 0, skipped, failed: 0 },
    });
    expect(await wrongStatuses(stage, (at) => (isTouched(at) ? other : before(at)))).toBe(0);
    expect((await listProspects(stage.cold(), caller, ListQuery.parse({}))).total).toBe(COUNT);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await table.stop();
  }
});
