/** Rows that came all at once, past the unflushed entries: one run, visible by one move of the head. */
import { setTimeout as sleep } from "node:timers/promises";
import { arranged } from "#shared/company-index/arrange.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import type { Commit } from "#shared/company-index/head.ts";
import type { Run } from "#shared/company-index/manifest.ts";
import { discardRun, type IndexContext, publish, storeRun } from "#shared/company-index/publish.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { TableBusy } from "#shared/errors.ts";

const TRIES = 20;

export interface ImportedOptions {
  /** Names what is stored, so that it can be found where the head never comes to lead to it. */
  readonly newId?: () => string;
  /** What becomes true with the move of the head. */
  readonly commit?: Commit;
}

/** Rows of prospects that the index has never heard of, with their notes. All of them are found from one moment on. */
export async function addImported(
  context: IndexContext,
  companyId: number,
  rows: readonly RowWithNotes[],
  { newId, commit }: ImportedOptions = {},
): Promise<void> {
  const built = { rows: arranged(rows), looseNotes: [], prospects: [], notes: [] };
  await addRun(context, companyId, await storeRun(context.table, companyId, built, newId), commit);
}

/** A run whose pieces are stored. Where it cannot be added, they are removed. */
export async function addRun(context: IndexContext, companyId: number, run: Run, commit?: Commit): Promise<void> {
  const { table } = context;
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const { head } = await readUnflushed(table, companyId);
    const moved = await publish(context, companyId, head, run, [...head.manifest, run.id], commit);
    if (moved !== undefined) return;
    await sleep(Math.random() * 20 * attempt);
  }
  await discardRun(table, companyId, run);
  throw new TableBusy(`the index of company ${companyId} kept changing`);
}
