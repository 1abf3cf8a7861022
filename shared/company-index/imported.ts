/** Rows that came all at once, past the unflushed entries: one run, visible by one move of the head. */
import { setTimeout as sleep } from "node:timers/promises";
import { arranged } from "#shared/company-index/arrange.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { discardRun, type IndexWorld, publish, storeRun } from "#shared/company-index/publish.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { readManifest } from "#shared/company-index/store.ts";
import { TableBusy } from "#shared/db/errors.ts";

const TRIES = 20;

/** Rows of prospects that the index has never heard of, with their notes. All of them are found from one moment on. */
export async function addImported(world: IndexWorld, companyId: number, rows: readonly RowWithNotes[]): Promise<void> {
  const { table } = world;
  const run = await storeRun(table, companyId, { rows: arranged(rows), looseNotes: [], prospects: [], notes: [] });
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const { head } = await readUnflushed(table, companyId);
    const { runs } = await readManifest(table, companyId, head.manifest);
    if ((await publish(world, companyId, head, { runs: [...runs, run] })) !== undefined) return;
    await sleep(Math.random() * 20 * attempt);
  }
  await discardRun(table, companyId, run);
  throw new TableBusy(`the index of company ${companyId} kept changing`);
}
