/** Measures budgets 9 and 10 of docs/benchmarks.md, which limit the cost, speed and memory of CSV imports and exports. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { contextOn } from "#shared/context.ts";
import { type Budget, sizeOf } from "./budget.ts";
import { writeCsvFile } from "./csv-file.ts";
import { type CsvJob, Exported, Imported, Ratios } from "./csv-process.ts";
import type { BenchCompany } from "./prospects.ts";
import { foundCompany } from "./stage.ts";
import type { BenchTable } from "./table.ts";

const IMPORT_HEAP_MB = 256;
const EXPORT_HEAP_MB = 64;
/**
 * Maximum megabytes of V8's young generation, which holds new objects. V8's default value is too large for the small heaps of this bench.
 */
const YOUNG_MB = 4;
const MB = 2 ** 20;

/**
 * Measures one import and one export of a company. The units are equal in each run. The rows per second and the memory depend on the load
 * of the machine.
 */
export const csvBudgets = (table: BenchTable, count: number): Promise<Budget[]> =>
  withCompany(table, `csv-${count}`, count, async (job, notes) => {
    const imported = Imported.parse(await inOwnProcess("csv-job.ts", { ...job, work: "import" }, IMPORT_HEAP_MB));
    if (imported.imported !== count) throw new Error(`${imported.imported} of ${count} rows were imported`);
    const { blocks } = imported;
    const exported = Exported.parse(
      await inOwnProcess("csv-job.ts", { ...job, work: "export", blocks }, EXPORT_HEAP_MB),
    );
    if (exported.processed !== count) throw new Error(`${exported.processed} of ${count} rows were exported`);
    return [...importLines(count, notes, imported), ...exportLines(count, exported)];
  });

const line = (count: number, number: number, text: string, limit: number | null, measured: number): Budget => ({
  number,
  text,
  size: sizeOf(count),
  limit,
  measured,
});

const importLines = (count: number, notes: number, imported: Imported): Budget[] => [
  line(count, 9, "import, write units a row beside one for each note", 1.1, (imported.writeUnits - notes) / count),
  line(count, 9, "import, rows a second", null, (count / imported.ms) * 1_000),
  line(count, 9, "import, heap at its peak, MB", IMPORT_HEAP_MB, imported.peakHeapBytes / MB),
  line(count, 9, "import, memory of its process at its peak, MB", null, imported.peakBytes / MB),
];

const exportLines = (count: number, exported: Exported): Budget[] => [
  line(count, 10, "export, read units by bytes of rows / 8 KB", 1.05, exported.readUnits / (exported.rowBytes / 8_192)),
  line(count, 10, "export, rows a second, streamed", null, (count / exported.ms) * 1_000),
  line(count, 10, "export, rows a second, into a file", null, (count / exported.jobMs) * 1_000),
  line(count, 10, "export, heap at its peak, MB", EXPORT_HEAP_MB, exported.peakHeapBytes / MB),
  line(count, 10, "export, memory of its process at its peak, MB", null, exported.peakBytes / MB),
];

/** Measures an import and an export, and divides their times by the times of plain SDK calls that write and read the same rows. */
export const csvRatios = (table: BenchTable, count: number): Promise<Budget[]> =>
  withCompany(table, "csv-ratios", count, async (job) => {
    const sums = Ratios.parse(await inOwnProcess("csv-ratios.ts", job));
    const [imports, exports] = [sums.importMs / sums.bareWriteMs, sums.exportMs / sums.bareReadMs];
    return [
      line(count, 9, "import, times as long as bare BatchWriteItem of the same rows", 2, imports),
      line(count, 10, "export, times as long as bare pages of Query of the same rows", 1.25, exports),
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

/** Runs the script in a separate process. The process fails if its heap exceeds `heapMb`. */
async function inOwnProcess(script: string, job: object, heapMb?: number): Promise<unknown> {
  const flags = heapMb === undefined ? [] : [`--max-heap-size=${heapMb}`, `--max-semi-space-size=${YOUNG_MB}`];
  const file = join(import.meta.dirname, script);
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, file, JSON.stringify(job)]);
  return JSON.parse(stdout);
}
