/** Measures the cost, speed and memory of CSV imports and exports (budgets 9 and 10 of docs/benchmarks.md). */
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as z from "zod/mini";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { csvText, decimal } from "#shared/prospects/csv/write.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { inOwnProcess } from "./own-process.ts";
import { type BenchCompany, type Made, makeProspect } from "./prospects.ts";
import { foundCompany } from "./stage.ts";
import type { BenchTable } from "./table.ts";

const SCRIPT = "csv-process.ts";
const IMPORT_HEAP_MB = 256;
const EXPORT_HEAP_MB = 64;
/** Maximum megabytes of V8's young generation, which holds new objects. The default is too large for the small heaps of this bench. */
const YOUNG_MB = 4;
const MB = 2 ** 20;

/** The numbers of the first and the last table partition with the company's prospects. A partition contains 128 consecutive ids. */
const Blocks = z.object({ from: z.int(), to: z.int() });

const memory = { peakHeapBytes: z.number(), peakBytes: z.number() };

/** `ms` is the time of the import in milliseconds of the wall clock. */
const Imported = z.object({ ...memory, ms: z.number(), writeUnits: z.number(), imported: z.int(), blocks: Blocks });

const Exported = z.object({
  ...memory,
  /** Milliseconds of an export that is streamed to the client in one HTTP answer. */
  ms: z.number(),
  readUnits: z.number(),
  rowBytes: z.number(),
  /** Milliseconds of an export job, which writes the CSV file to the S3 bucket. */
  jobMs: z.number(),
  processed: z.int(),
});

/** Returns options of Node.js with which a process fails if its heap exceeds `mb` megabytes. */
const heapOf = (mb: number) => ({ flags: [`--max-heap-size=${mb}`, `--max-semi-space-size=${YOUNG_MB}`] });

/** Measures one import and one export. Rows per second and process memory depend on the load of the machine, so they have no limit. */
export async function csvBudgets(table: BenchTable, count: number): Promise<Budget[]> {
  const context = contextOn(table.open());
  const company: BenchCompany = { ...(await foundCompany(context, 0, `csv-${count}`)), count };
  const folder = mkdtempSync(join(tmpdir(), "canvassing-bench-"));
  try {
    const notes = await writeCsvFile(context, company, join(folder, "in.csv"));
    const job = { endpoint: table.endpoint, companyId: company.id, ownerId: company.ownerId, folder };
    const imported = Imported.parse(await inOwnProcess(SCRIPT, { ...job, work: "import" }, heapOf(IMPORT_HEAP_MB)));
    if (imported.imported !== count) throw new Error(`${imported.imported} of ${count} rows were imported`);
    const exporting = { ...job, work: "export", blocks: imported.blocks };
    const exported = Exported.parse(await inOwnProcess(SCRIPT, exporting, heapOf(EXPORT_HEAP_MB)));
    if (exported.processed !== count) throw new Error(`${exported.processed} of ${count} rows were exported`);
    const line = budgetsOf(sizeOf(count));
    return [
      line(9, "import, write units a row beside one for each note", 1.1, (imported.writeUnits - notes) / count),
      line(9, "import, rows a second", null, (count / imported.ms) * 1_000),
      line(9, "import, heap at its peak, MB", IMPORT_HEAP_MB, imported.peakHeapBytes / MB),
      line(9, "import, memory of its process at its peak, MB", null, imported.peakBytes / MB),
      line(10, "export, read units by bytes of rows / 8 KB", 1.05, exported.readUnits / (exported.rowBytes / 8_192)),
      line(10, "export, rows a second, streamed", null, (count / exported.ms) * 1_000),
      line(10, "export, rows a second, into a file", null, (count / exported.jobMs) * 1_000),
      line(10, "export, heap at its peak, MB", EXPORT_HEAP_MB, exported.peakHeapBytes / MB),
      line(10, "export, memory of its process at its peak, MB", null, exported.peakBytes / MB),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Number of rows that the bench generates at a time, so that the whole CSV file is never in memory. */
const PORTION = 4_000;

const columns = "name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedToEmail,tags,notes".split(
  ",",
);

async function writeCsvFile(context: ApiContext, company: BenchCompany, file: string): Promise<number> {
  const dictionary = await loadDictionary(context.table, company.id);
  let notes = 0;
  const text = function* (): Generator<string> {
    yield csvText([columns]);
    for (let at = 0; at < company.count; at += PORTION) {
      const made = Array.from({ length: Math.min(PORTION, company.count - at) }, (_, i) =>
        makeProspect(company, at + i),
      );
      notes += made.filter(({ note }) => note !== undefined).length;
      yield csvText(made.map((one) => cellsOf(one, dictionary)));
    }
  };
  await pipeline(Readable.from(text()), createWriteStream(file));
  return notes;
}

const cellsOf = ({ prospect, note }: Made, { statuses, tags, users }: Dictionary): string[] => [
  prospect.name ?? "",
  prospect.phoneNumber ?? "",
  prospect.emailAddress ?? "",
  ...[prospect.lat, prospect.lng].map((degrees) => (degrees === null ? "" : decimal(degrees))),
  prospect.address?.address1 ?? "",
  prospect.address?.address2 ?? "",
  prospect.address?.city ?? "",
  prospect.address?.state ?? "",
  prospect.address?.zip ?? "",
  statuses.get(prospect.statusId ?? 0)?.value ?? "",
  users.get(prospect.assignedToUserId ?? 0)?.email ?? "",
  prospect.tagIds.map((id) => tags.get(id)?.value ?? "").join(";"),
  note?.body ?? "",
];
