/** Measures the memory of a warm function that has loaded a company's whole search index, including the searchable texts. */
import * as z from "zod/mini";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { listQuery } from "./lists.ts";
import { inOwnProcess } from "./own-process.ts";
import type { Stage } from "./stage.ts";

const ReaderMemory = z.object({
  /** Resident memory after the reads and a garbage collection. */
  restingBytes: z.number(),
  peakBytes: z.number(),
  /** Bytes of a loaded search index: the growth of the process's live memory. */
  indexBytes: z.number(),
  /** The size of this index as the function's cache of indexes estimates it. */
  estimatedBytes: z.number(),
});
export type ReaderMemory = z.infer<typeof ReaderMemory>;
const MB = 2 ** 20;

/** Maximum heap in megabytes: three quarters of the memory of a function with 1 024 MB. */
const HEAP_MB = 768;

export async function memoryBudgets(stage: Stage, endpoint: string): Promise<Budget[]> {
  const { company, clock } = stage;
  for (const name of ["common word", "two words", "phone digits"] as const) await stage.fill(listQuery(company, name));
  const job = { endpoint, companyId: company.id, ownerId: company.ownerId, now: clock.ms };
  const flags = ["--expose-gc", `--max-old-space-size=${HEAP_MB}`];
  const { restingBytes, peakBytes, indexBytes, estimatedBytes } = ReaderMemory.parse(
    await inOwnProcess("reader.ts", job, { flags }),
  );
  // In smaller companies, other objects of the process are a large part of the growth, so the budgets have no limit.
  const most = (limit: number): number | null => (company.count < 100_000 ? null : limit);
  const line = budgetsOf(sizeOf(company.count));
  return [
    line(0, "memory of a warm reader with texts, MB", 512, restingBytes / MB),
    line(0, "memory of a reader at its peak, MB", 512, peakBytes / MB),
    line(0, "memory of an index / estimate of the cache", most(1.11), indexBytes / estimatedBytes),
    line(0, "estimate of the cache / memory of an index", most(1.35), estimatedBytes / indexBytes),
  ];
}
