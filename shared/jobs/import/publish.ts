/** The end of an import by an upload: its rows become a run of the company index, and all of them are seen from one moment on. */
import { addRun, storeAside, storeSegments } from "#shared/company-index/write/publish.ts";
import type { JobContext } from "#shared/context.ts";
import type { Write } from "#shared/db/item.ts";
import { piecesNamed } from "#shared/jobs/import/abandon.ts";
import { rowsAlongCurve } from "#shared/jobs/import/chunk.ts";
import type { HeldImport } from "#shared/jobs/import/lease.ts";
import { closing } from "#shared/jobs/import/opening.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import type { StoredImport } from "#shared/jobs/import/schema.ts";
import { errorFields, log } from "#shared/log.ts";

/** Sorting and storing a million rows takes less. */
export const PUBLISH_MS = 300_000;

export async function publishRows(context: JobContext, held: HeldImport): Promise<void> {
  const { companyId, id } = held.stored;
  const { total, progress } = held.job;
  if (total === null) throw new Error("rows are published before they are counted");
  const newId = piecesNamed(id);
  const rows = await rowsAlongCurve(context.objects, { companyId, id }, progress.stretches);
  const segments = await storeSegments(context.table, companyId, rows, newId, () => held.keep({}));
  const nothingBeside = { prospects: [], notes: [], looseNotes: [] };
  const run = await storeAside(context.table, companyId, segments, nothingBeside, newId);
  // Whoever takes it over now stores the same once more, under the same names.
  await held.keep({});
  const commit = (move: Write) => context.table.transact([move, ...completed(held, total.prospect)]);
  await addRun(context, companyId, run, commit);
}

/** Nothing is written: a dry run, or a file without a row that could be imported. */
export const completeWithout = (context: JobContext, held: HeldImport): Promise<void> =>
  context.table.transact(completed(held, held.stored.imported));

/** What becomes true with the move of the head. */
function completed(held: HeldImport, imported: number): Write[] {
  const { companyId, id, prospectBlocks, addressBlocks } = held.stored;
  const progress = { ...held.begun("publish"), stretches: held.job.progress.stretches };
  return [
    held.ending({ state: "completed", imported, job: { ...held.job, progress } }),
    ...closing({ companyId, id, prospectBlocks, addressBlocks }),
  ];
}

/** What only the work needs. What is missed here is removed with its folder, in a month. */
export async function tidy({ objects }: JobContext, { companyId, id, job }: StoredImport): Promise<void> {
  const stretches = job?.progress.stretches ?? 0;
  const going = Array.from({ length: stretches }, (_, number) => fileKeys.stretch(companyId, id, number));
  try {
    for (const key of [...going, fileKeys.names(companyId, id)]) await objects.remove(key);
  } catch (error) {
    log.warn("files of an import left behind", { id, ...errorFields(error) });
  }
}
