/** Budgets 9 and 10: a company moves in and out as CSV, at what price, how fast beside bare calls of the table, and in how much memory. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { contextOn } from "#shared/context.ts";
import { type Budget, sizeOf } from "./budget.ts";
import { Exported, Imported, Turns } from "./csv-figures.ts";
import { writeCsvFile } from "./csv-file.ts";
import type { CsvJob } from "./csv-world.ts";
import type { BenchCompany } from "./prospects.ts";
import { foundCompany } from "./stage.ts";
import type { BenchTable } from "./table.ts";

const IMPORT_HEAP_MB = 256;
const EXPORT_HEAP_MB = 64;
/** Of the heap, for what is young: by itself V8 would give it too little to work in so small a heap, or more than all of it. */
const YOUNG_MB = 4;
const MB = 2 ** 20;

/** What does not depend on what else the machine does, but for the rows a second. */
export const csvBudgets = (table: BenchTable, count: number): Promise<Budget[]> =>
  withCompany(table, `csv-${count}`, count, async (job, notes) => {
    const come = Imported.parse(await inOwnProcess("csv-job.ts", { ...job, work: "import" }, IMPORT_HEAP_MB));
    if (come.imported !== count) throw new Error(`${come.imported} of ${count} rows were imported`);
    const { blocks } = come;
    const gone = Exported.parse(await inOwnProcess("csv-job.ts", { ...job, work: "export", blocks }, EXPORT_HEAP_MB));
    if (gone.processed !== count) throw new Error(`${gone.processed} of ${count} rows were exported`);
    return [...importLines(count, notes, come), ...exportLines(count, gone)];
  });

const line = (count: number, number: number, text: string, limit: number | null, measured: number): Budget => ({
  number,
  text,
  size: sizeOf(count),
  limit,
  measured,
});

const importLines = (count: number, notes: number, come: Imported): Budget[] => [
  line(count, 9, "import, write units a row beside one for each note", 1.1, (come.writeUnits - notes) / count),
  line(count, 9, "import, rows a second", null, (count / come.ms) * 1_000),
  line(count, 9, "import, heap at its peak, MB", IMPORT_HEAP_MB, come.peakHeapBytes / MB),
  line(count, 9, "import, memory of its process at its peak, MB", null, come.peakBytes / MB),
];

const exportLines = (count: number, gone: Exported): Budget[] => [
  line(count, 10, "export, read units by bytes of rows / 8 KB", 1.05, gone.readUnits / (gone.rowBytes / 8_192)),
  line(count, 10, "export, rows a second, streamed", null, (count / gone.ms) * 1_000),
  line(count, 10, "export, rows a second, into a file", null, (count / gone.jobMs) * 1_000),
  line(count, 10, "export, heap at its peak, MB", EXPORT_HEAP_MB, gone.peakHeapBytes / MB),
  line(count, 10, "export, memory of its process at its peak, MB", null, gone.peakBytes / MB),
];

/** Times, of work of this size, beside those of bare calls. */
export const csvTurns = (table: BenchTable, count: number): Promise<Budget[]> =>
  withCompany(table, "csv-turns", count, async (job) => {
    const told = Turns.parse(await inOwnProcess("csv-turns.ts", job));
    const [come, gone] = [told.importMs / told.bareWriteMs, told.exportMs / told.bareReadMs];
    return [
      line(count, 9, "import, times as long as bare BatchWriteItem of the same rows", 2, come),
      line(count, 10, "export, times as long as bare pages of Query of the same rows", 1.25, gone),
    ];
  });

async function withCompany<T>(
  table: BenchTable,
  name: string,
  count: number,
  work: (job: CsvJob, notes: number) => Promise<T>,
): Promise<T> {
  const context = contextOn(table.open());
  const company: BenchCompany = { ...(await foundCompany(context, 0, name)), count };
  const folder = mkdtempSync(join(tmpdir(), "canvassing-bench-"));
  try {
    const notes = await writeCsvFile(context, company, join(folder, "in.csv"));
    return await work({ endpoint: table.endpoint, companyId: company.id, ownerId: company.ownerId, folder }, notes);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One with a heap of its own ends by itself when it needs more. */
async function inOwnProcess(script: string, job: object, heapMb?: number): Promise<unknown> {
  const flags = heapMb === undefined ? [] : [`--max-heap-size=${heapMb}`, `--max-semi-space-size=${YOUNG_MB}`];
  const file = join(import.meta.dirname, script);
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, file, JSON.stringify(job)]);
  return JSON.parse(stdout);
}
