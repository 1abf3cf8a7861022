/** Budgets 9 and 10: a company moves in and out as CSV, at what price, how fast beside bare calls of the table, and in how much memory. */
import { execFile } from "node:child_process";
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { csvText, decimal } from "#shared/csv/write.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Item } from "#shared/db/table.ts";
import { type World, worldOn } from "#shared/world.ts";
import { type Budget, sizeOf } from "./budget.ts";
import { taken } from "./clock.ts";
import { type Blocks, Exported, Imported } from "./csv-figures.ts";
import { type BenchCompany, type Made, makeProspect } from "./prospects.ts";
import { foundCompany } from "./stage.ts";
import type { BenchTable } from "./table.ts";

const IMPORT_HEAP_MB = 256;
const EXPORT_HEAP_MB = 64;
const MB = 2 ** 20;
/** Rows that are made, or written without the service, at a time. */
const PORTION = 4_000;

export async function csvBudgets(table: BenchTable, count: number): Promise<Budget[]> {
  const world = worldOn(table.open());
  const company: BenchCompany = { ...(await foundCompany(world, 0, `csv-${count}`)), count };
  const folder = mkdtempSync(join(tmpdir(), "canvassing-bench-"));
  try {
    const notes = await writeFile(world, company, join(folder, "in.csv"));
    const job = { endpoint: table.endpoint, companyId: company.id, ownerId: company.ownerId, folder };
    const come = Imported.parse(await inOwnProcess(IMPORT_HEAP_MB, { ...job, work: "import" }));
    if (come.imported !== count) throw new Error(`${come.imported} of ${count} rows were imported`);
    const bareMs = await writeBare(world, company.id, come.blocks);
    const { blocks } = come;
    const gone = Exported.parse(await inOwnProcess(EXPORT_HEAP_MB, { ...job, work: "export", blocks }));
    return linesOf(count, notes, come, bareMs, gone);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function linesOf(count: number, notes: number, come: Imported, bareWriteMs: number, gone: Exported): Budget[] {
  const size = sizeOf(count);
  const line = (number: number, text: string, limit: number | null, measured: number): Budget => ({
    number,
    text,
    size,
    limit,
    measured,
  });
  const perSecond = (ms: number): number => Math.round((count / ms) * 1_000);
  return [
    line(9, "import, write units a row beside one for each note", 1.1, (come.writeUnits - notes) / count),
    line(9, "import, times as long as bare BatchWriteItem of the same rows", 2, come.ms / bareWriteMs),
    line(9, "import, rows a second", null, perSecond(come.ms)),
    line(9, "import, heap at its peak, MB", IMPORT_HEAP_MB, come.peakHeapBytes / MB),
    line(10, "export, read units by bytes of rows / 8 KB", 1.05, gone.readUnits / (gone.rowBytes / 8_192)),
    line(10, "export, times as long as bare pages of Query of the same rows", 1.25, gone.ms / gone.bareMs),
    line(10, "export, rows a second", null, perSecond(gone.ms)),
    line(10, "export, heap at its peak, MB", EXPORT_HEAP_MB, gone.peakHeapBytes / MB),
  ];
}

/** Ends by itself when it needs more. */
async function inOwnProcess(heapMb: number, job: object): Promise<unknown> {
  const script = join(import.meta.dirname, "csv-job.ts");
  const flags = [`--max-heap-size=${heapMb}`];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, script, JSON.stringify(job)]);
  return JSON.parse(stdout);
}

/** Gives the number of notes in it. */
async function writeFile(world: World, company: BenchCompany, file: string): Promise<number> {
  const { statuses, tags, users } = await loadDictionary(world.table, company.id);
  let notes = 0;
  const text = function* (): Generator<string> {
    yield csvText([columns]);
    for (let at = 0; at < company.count; at += PORTION) {
      const made = Array.from({ length: Math.min(PORTION, company.count - at) }, (_, i) =>
        makeProspect(company, at + i),
      );
      notes += made.filter(({ note }) => note !== undefined).length;
      yield csvText(made.map(cellsOf));
    }
  };
  const cellsOf = ({ prospect, note }: Made): string[] => [
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
  await pipeline(Readable.from(text()), createWriteStream(file));
  return notes;
}

const columns = "name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedToEmail,tags,notes".split(
  ",",
);

/** The rows that the import has written, once more, for a company that there is not; reading them takes no part in it. */
async function writeBare({ table }: World, companyId: number, { from, to }: Blocks): Promise<number> {
  const elsewhere = companyId + 1_000_000_000;
  let ms = 0;
  let waiting: (Key & Item)[] = [];
  const write = async (): Promise<void> => {
    const items = waiting;
    waiting = [];
    ms += (await taken(() => table.batchPut(items))).wallMs;
  };
  for (let block = from; block <= to; block++) {
    const { pk } = keys.prospectBlock(elsewhere, block);
    for await (const item of table.query(keys.prospectBlock(companyId, block))) {
      waiting.push({ ...item, pk, sk: String(item.sk) });
    }
    if (waiting.length >= PORTION) await write();
  }
  await write();
  return ms;
}
