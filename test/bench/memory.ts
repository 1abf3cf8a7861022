/**
 * Measures the memory of a warm function that has loaded a company's whole search index, including the searchable texts. The function runs
 * in a separate process.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod/mini";
import { type Budget, sizeOf } from "./budget.ts";
import { listQuery } from "./lists.ts";
import type { Stage } from "./stage.ts";

const Memory = z.object({ restingBytes: z.number(), peakBytes: z.number() });
const MB = 2 ** 20;

/** Maximum size of V8's heap for old objects in megabytes: three quarters of a Lambda function's memory of 1 024 MB. */
const HEAP_MB = 768;

export async function memoryBudgets(stage: Stage, endpoint: string): Promise<Budget[]> {
  const { company, clock } = stage;
  for (const name of ["common word", "two words", "phone digits"] as const) await stage.fill(listQuery(company, name));
  const job = JSON.stringify({ endpoint, companyId: company.id, ownerId: company.ownerId, now: clock.ms });
  const script = join(import.meta.dirname, "reader.ts");
  const flags = ["--expose-gc", `--max-old-space-size=${HEAP_MB}`];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, script, job]);
  const { restingBytes, peakBytes } = Memory.parse(JSON.parse(stdout));
  const size = sizeOf(company.count);
  return [
    { number: 0, text: "memory of a warm reader with texts, MB", size, limit: 512, measured: restingBytes / MB },
    { number: 0, text: "memory of a reader at its peak, MB", size, limit: 512, measured: peakBytes / MB },
  ];
}
