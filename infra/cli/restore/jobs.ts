/** Finds the imports, exports and bulk jobs that were unfinished at the restore point. The service continues them after the switch. */
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { keyOfRow, ROWS_TOGETHER } from "../company/rows.ts";
import type { CarryContext } from "./carry-over.ts";

const SHOWN = 100;
const Row = z.looseObject({ state: z.string() });

/** Returns one line for each unfinished job of the restored table, at most 100 lines. */
export async function continuedJobs({ restored: { table } }: Pick<CarryContext, "restored">): Promise<string[]> {
  const found: keys.Key[] = [];
  for await (const item of table.query({ pk: keys.jobShard, index: DUE_INDEX.name })) {
    if (keys.jobAt(keyOfRow(item)) !== undefined && found.length < SHOWN) found.push(keyOfRow(item));
  }
  const lines: string[] = [];
  for (let first = 0; first < found.length; first += ROWS_TOGETHER) {
    const rows = await table.batchGet(found.slice(first, first + ROWS_TOGETHER));
    for (const row of rows) {
      const job = keys.jobAt(keyOfRow(row));
      if (job !== undefined) lines.push(`company ${job.companyId}: ${job.kind} ${job.id}, ${Row.parse(row).state}`);
    }
  }
  return lines.toSorted();
}
