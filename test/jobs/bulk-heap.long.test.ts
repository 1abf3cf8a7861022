/**
 * Tests that a bulk job over a million stored prospects, and then its undo, run to their end within a heap of 256 MB. The job changes one
 * prospect in 20, because the local table needs some milliseconds for each changed row. All other prospects already have the new status.
 * The environment variable BULK_RECORDS sets another number of prospects, and BULK_CHANGED_ONE_IN=1 makes the job change all of them.
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
import { pageProspect } from "#shared/prospects/stored.ts";
import { type Stage, setStage } from "../bench/stage.ts";
import { type BenchTable, startBenchTable } from "../bench/table.ts";
import { updateProspect } from "../harness/verbs.ts";

const COUNT = Number(process.env.BULK_RECORDS ?? 1_000_000);
const CHANGED_ONE_IN = Number(process.env.BULK_CHANGED_ONE_IN ?? 20);
const HEAP_MB = 256;
/** Number of rows that the test writes or reads in one step. */
const TOGETHER = 5_000;
/** Between the job and its undo, a user changes the status of every fiftieth prospect that the job has changed. */
const TOUCHED_ONE_IN = 50;

const isChanged = (at: number): boolean => at % CHANGED_ONE_IN === 0;
const isTouched = (at: number): boolean => at % (CHANGED_ONE_IN * TOUCHED_ONE_IN) === 0;
const CHANGED = Math.ceil(COUNT / CHANGED_ONE_IN);
const TOUCHED = Math.ceil(COUNT / (CHANGED_ONE_IN * TOUCHED_ONE_IN));

const count = z.int();
const Peaks = z.object({ heapMb: count, rssMb: count, heapMbByMinute: z.array(z.nullable(count)), seconds: count });
const Created = z.extend(Peaks, { id: count });
const Run = z.extend(Peaks, {
  state: z.string(),
  counts: z.object({ total: count, changed: count, unchanged: count, skipped: count, failed: count }),
  looks: count,
  fault: z.optional(z.string()),
});
const Read = z.extend(Peaks, { outcomes: z.record(z.string(), count), pages: count, lines: count });

/**
 * Flushes the company's search index again and again, until the returned function is called. In the service, a function that reads the
 * table's stream flushes the index.
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

class SmallHeap {
  readonly #table: BenchTable;
  readonly #stage: Stage;
  readonly #folder: string;

  constructor(table: BenchTable, stage: Stage, folder: string) {
    this.#table = table;
    this.#stage = stage;
    this.#folder = folder;
  }

  /** Does the work in a separate process with a small heap. The process ends with an error if it needs a larger heap. */
  async #in<T extends typeof Peaks>(work: object, schema: T): Promise<z.infer<T>> {
    const { company, clock } = this.#stage;
    const task = {
      endpoint: this.#table.endpoint,
      companyId: company.id,
      ownerId: company.ownerId,
      now: clock.ms,
      folder: this.#folder,
      work,
    };
    const script = join(import.meta.dirname, "bulk-heap-process.ts");
    const flags = [`--max-old-space-size=${HEAP_MB}`, script, JSON.stringify(task)];
    const { stdout } = await promisify(execFile)(process.execPath, flags);
    console.log(`${JSON.stringify(work)}: ${stdout}`);
    const measured = z.parse(schema, JSON.parse(stdout));
    expect(measured.heapMb).toBeLessThan(HEAP_MB);
    clock.ms += 3_600_000;
    return measured;
  }

  /** Creates a job, executes it, and reads its results. Expects one result for each record. Returns the job's id. */
  async job(work: object, wanted: Record<"changed" | "unchanged" | "skipped", number>): Promise<number> {
    const { company } = this.#stage;
    const { id } = await this.#in(work, Created);
    const stop = flushing(this.#table, this.#stage);
    const { fault, ...ended } = await this.#in({ run: id }, Run).finally(stop);
    expect(fault).toBeUndefined();
    const total = wanted.changed + wanted.unchanged + wanted.skipped;
    expect(ended).toMatchObject({ state: "completed", counts: { total, ...wanted, failed: 0 } });
    const read = await this.#in({ read: { id, firstId: company.firstId, count: COUNT } }, Read);
    const outcomes = Object.entries(wanted).filter(([, records]) => records > 0);
    expect(read).toMatchObject({ outcomes: Object.fromEntries(outcomes), lines: total });
    return id;
  }
}

/**
 * Returns the number of prospects that do not have the status `wanted(at)`. `at` is the position of a prospect in the company, counted from
 * 0.
 */
async function wrongStatuses({ context, company }: Stage, wanted: (at: number) => number | undefined): Promise<number> {
  let wrong = 0;
  for (let first = 0; first < COUNT; first += TOGETHER) {
    const ids = Array.from({ length: Math.min(TOGETHER, COUNT - first) }, (_, i) => company.firstId + first + i);
    const items = await context.table.batchGet(ids.map((id) => keys.prospect(company.id, id)));
    expect(items).toHaveLength(ids.length);
    for (const item of items) {
      const { id, statusId } = pageProspect(item);
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
    const stage = await setStage(table, COUNT, (at, [held, former]) => (isChanged(at) ? former : held));
    const { company, caller, context } = stage;
    for (let rows = TOGETHER; rows < COUNT + TOGETHER; rows += TOGETHER) await stage.fillFirst(Math.min(rows, COUNT));
    const [held = 0, former = 0, other = 0] = company.statuses.map(({ id }) => id);
    const before = (at: number): number => (isChanged(at) ? former : held);
    expect(await wrongStatuses(stage, before)).toBe(0);

    const heap = new SmallHeap(table, stage, folder);
    const change = { change: { statusId: held, count: COUNT } };
    const id = await heap.job(change, { changed: CHANGED, unchanged: COUNT - CHANGED, skipped: 0 });
    expect(await wrongStatuses(stage, () => held)).toBe(0);

    for (let at = 0; at < COUNT; at++) {
      if (isTouched(at)) await updateProspect(context, caller, company.firstId + at, { currentStatusId: other });
    }
    await heap.job({ undo: id }, { changed: CHANGED - TOUCHED, unchanged: 0, skipped: TOUCHED });
    expect(await wrongStatuses(stage, (at) => (isTouched(at) ? other : before(at)))).toBe(0);
    expect((await listProspects(stage.cold(), caller, ListQuery.parse({}))).total).toBe(COUNT);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await table.stop();
  }
});
