/** The end of an import by an upload: its rows become a run of the company index, and all of them are seen from one moment on. */
import { addRun } from "#shared/company-index/imported.ts";
import { storeAside, storeSegments } from "#shared/company-index/publish.ts";
import type { Write } from "#shared/db/table.ts";
import { piecesNamed } from "#shared/imports/abandon.ts";
import type { HeldImport } from "#shared/imports/held.ts";
import { closing } from "#shared/imports/opening.ts";
import { fileKeys } from "#shared/imports/places.ts";
import type { StoredImport } from "#shared/imports/schema.ts";
import { rowsAlongCurve } from "#shared/imports/stretch.ts";
import type { JobWorld } from "#shared/jobs/world.ts";
import { errorFields, log } from "#shared/log.ts";

/** Sorting and storing a million rows takes less. */
export const PUBLISH_MS = 300_000;

export async function publishRows(world: JobWorld, held: HeldImport): Promise<void> {
  const { companyId, id } = held.stored;
  const { total, progress } = held.job;
  if (total === null) throw new Error("rows are published before they are counted");
  const newId = piecesNamed(id);
  const rows = await rowsAlongCurve(world.objects, { companyId, id }, progress.stretches);
  const segments = await storeSegments(world.table, companyId, rows, newId, () => held.keep({}));
  const nothingBeside = { prospects: [], notes: [], looseNotes: [] };
  const run = await storeAside(world.table, companyId, segments, nothingBeside, newId);
  // Whoever takes it over now stores the same once more, under the same names.
  await held.keep({});
  const commit = (move: Write) => world.table.transact([move, ...completed(held, total.prospect)]);
  await addRun(world, companyId, run, commit);
}

/** Nothing is written: a dry run, or a file without a row that could be imported. */
export const completeWithout = (world: JobWorld, held: HeldImport): Promise<void> =>
  world.table.transact(completed(held, held.stored.imported));

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
export async function tidy({ objects }: JobWorld, { companyId, id, job }: StoredImport): Promise<void> {
  const stretches = job?.progress.stretches ?? 0;
  const going = Array.from({ length: stretches }, (_, number) => fileKeys.stretch(companyId, id, number));
  try {
    for (const key of [...going, fileKeys.names(companyId, id)]) await objects.remove(key);
  } catch (error) {
    log.warn("files of an import left behind", { id, ...errorFields(error) });
  }
}
