/** Runs as a separate process that reads lists and map pins as a warm function does, and prints the memory that it needs. */
import { existsSync, readFileSync } from "node:fs";
import * as z from "zod/mini";
import { companyIndex } from "#shared/company-index/read/company-index.ts";
import { contextOn } from "#shared/context.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { tableAt } from "../harness/faulty-dynamodb.ts";
import type { ReaderMemory } from "./memory.ts";

const Job = z.object({ endpoint: z.string(), companyId: z.int(), ownerId: z.int(), now: z.int() });
const { endpoint, companyId, ownerId, now } = Job.parse(JSON.parse(process.argv[2] ?? ""));
const caller = { companyId, userId: ownerId, role: "owner" as const, permissions: [] };
const newReader = () => contextOn(tableAt(endpoint), { now: () => now });

async function read(reader: ReturnType<typeof newReader>): Promise<void> {
  for (const search of ["denver", "garcia landlord", "555-1", "denver"]) {
    await listProspects(reader, caller, ListQuery.parse({ search, pageSize: "1" }));
    for (const _ of await mapPins(reader, caller, {}));
  }
}

/** Returns the bytes in use after garbage collections: V8's heap, and the typed arrays outside the heap. */
function liveBytes(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/**
 * Returns the maximum resident memory. On Linux, a new process begins as a copy of its parent, and `maxRSS` includes this copy, which may
 * be that of the whole bench. `VmHWM` is the maximum of this program alone.
 */
function peakKilobytes(): number {
  const status = "/proc/self/status";
  const [, peak] = existsSync(status) ? (/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(status, "utf8")) ?? []) : [];
  return peak === undefined ? process.resourceUsage().maxRSS : Number(peak);
}

const first = newReader();
await read(first);
const before = liveBytes();
const [restingBytes, peakBytes] = [process.memoryUsage.rss(), peakKilobytes() * 1_024];
// Only the growth by the second reader counts, because the first reader has also loaded code and other data. The second reader reads
// several times, because an index builds its sort orders and word indexes only when it is read again.
const second = newReader();
for (let i = 0; i < 4; i++) await read(second);
const indexBytes = liveBytes() - before;
const memory: ReaderMemory = {
  restingBytes,
  peakBytes,
  indexBytes,
  estimatedBytes: companyIndex(second.table).cachedBytes,
};
// This check comes after the measurement, so that the first index stays in memory until then.
if (companyIndex(first.table).cachedBytes === 0) throw new Error("the first index is no longer in memory");
process.stdout.write(JSON.stringify(memory));
