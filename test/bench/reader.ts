/** Runs as a separate process that reads lists and map pins as a warm function does. It prints the memory that the process needs. */
import { existsSync, readFileSync } from "node:fs";
import * as z from "zod/mini";
import { contextOn } from "#shared/context.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { openBenchTable } from "./table.ts";

const Job = z.object({ endpoint: z.string(), companyId: z.int(), ownerId: z.int(), now: z.int() });

export interface ReaderMemory {
  /** Bytes of resident memory after the reads and a garbage collection. */
  readonly restingBytes: number;
  readonly peakBytes: number;
  readonly sentBytes: number;
}

const { endpoint, companyId, ownerId, now } = Job.parse(JSON.parse(process.argv[2] ?? ""));
const context = contextOn(openBenchTable(endpoint), { now: () => now });
const caller = { companyId, userId: ownerId, role: "owner" as const, permissions: [] };
let sentBytes = 0;
for (const search of ["denver", "garcia landlord", "555-1", "denver"]) {
  await listProspects(context, caller, ListQuery.parse({ search, pageSize: "1" }));
  for (const text of await mapPins(context, caller, {})) sentBytes += text.length;
}
for (let i = 0; i < 3; i++) globalThis.gc?.();
const memory: ReaderMemory = {
  restingBytes: process.memoryUsage.rss(),
  peakBytes: peakKilobytes() * 1_024,
  sentBytes,
};
process.stdout.write(JSON.stringify(memory));

/**
 * Returns the maximum resident memory of this process. On Linux, `maxRSS` is no use: a new process begins as a copy of its parent, and
 * `maxRSS` includes the memory of this copy, which may be that of the whole bench. `VmHWM` in the kernel's file contains the maximum of
 * this program alone.
 */
function peakKilobytes(): number {
  const status = "/proc/self/status";
  const [, peak] = existsSync(status) ? (/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(status, "utf8")) ?? []) : [];
  return peak === undefined ? process.resourceUsage().maxRSS : Number(peak);
}
