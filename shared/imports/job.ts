/** One run of the work on an import by an upload: begins it, goes on where another run ended, or removes what it has left. */
import { may } from "#shared/auth/caller.ts";
import { FileGone } from "#shared/aws/file-errors.ts";
import { iso } from "#shared/clock.ts";
import { BadFile } from "#shared/csv/bad-file.ts";
import { keys } from "#shared/db/keys.ts";
import { isTransient } from "#shared/failure.ts";
import { abandon, clear } from "#shared/imports/abandon.ts";
import { checkFile } from "#shared/imports/check.ts";
import { HeldImport } from "#shared/imports/held.ts";
import { knownNames } from "#shared/imports/names.ts";
import { fileKeys } from "#shared/imports/places.ts";
import { completeWithout, PUBLISH_MS, publishRows, tidy } from "#shared/imports/publish.ts";
import { StoredImport, type StoredJob } from "#shared/imports/schema.ts";
import { planRows, writeRows } from "#shared/imports/write.ts";
import { JobLost } from "#shared/jobs/held.ts";
import type { JobWorld } from "#shared/jobs/world.ts";
import { limits } from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import { StoredUser } from "#shared/users/schema.ts";

/** Runs in a row that died, or failed by a fault of our own code, without progress: then the import is given up. */
const FRUITLESS_RUNS = 10;

interface Place {
  readonly companyId: number;
  readonly id: number;
}

/** Safe to repeat, to kill at any point and to run twice at once. Throws JobLost. */
export async function runImport(world: JobWorld, { companyId, id }: Place, remainingMs: () => number): Promise<void> {
  const item = await world.table.get(keys.import(companyId, id));
  if (item === undefined) return;
  const stored = StoredImport.parse(item);
  const held = new HeldImport(world, stored, remainingMs);
  if (stored.state === "completed") return item.dueAt === undefined ? undefined : held.end({});
  if (stored.runsUntil > world.clock.now()) return;
  if (stored.state === "failed" || stored.state === "cancelled") return clearAway(world, held);
  if (stored.job === undefined) return void (await abandon(world, stored));
  if (stored.state === "awaiting_upload" && !(await take(world, held, stored.job))) return;
  if (held.stored.state === "failed") return clearAway(world, held);
  await work(world, held);
}

/** False: there is nothing to be done yet. */
async function take({ objects, clock }: JobWorld, held: HeldImport, job: StoredJob): Promise<boolean> {
  const { companyId, id } = held.stored;
  const file = await objects.info(fileKeys.uploaded(companyId, id));
  if (file === undefined) {
    if (clock.now() < job.uploadUntil + limits.uploadMs) return false;
    await fail(held, "The file was not uploaded in time.");
  } else if (file.bytes > limits.jobBytes) {
    await fail(held, `The file may hold at most ${limits.jobBytes} bytes.`);
  } else {
    await held.save({ state: "running", job: { ...job, etag: file.etag } });
  }
  return true;
}

const fail = (held: HeldImport, failure: string): Promise<void> => held.release({ state: "failed", failure });

async function work(world: JobWorld, held: HeldImport): Promise<void> {
  if (held.job.runs >= FRUITLESS_RUNS) {
    await fail(held, "The import could not be completed.");
    return clearAway(world, held);
  }
  if (!(await mayBeDone(world, held.stored))) {
    await fail(held, "Whoever began the import may not import any more.");
    return clearAway(world, held);
  }
  await held.save({ job: { ...held.job, runs: held.job.runs + 1 } });
  try {
    await step(world, held);
  } catch (error) {
    if (error instanceof JobLost) throw error;
    if (!(error instanceof BadFile || error instanceof FileGone)) {
      // The next run need not wait until this one is taken for dead. A passing fault of AWS does not count against the import.
      const runs = isTransient(error) ? Math.max(0, held.job.runs - 1) : held.job.runs;
      await held.release({ job: { ...held.job, runs } }).catch(() => undefined);
      throw error;
    }
    log.warn("import refused", { id: held.stored.id, ...errorFields(error) });
    await fail(held, error instanceof BadFile ? error.message : "The file is not there any more, or was replaced.");
    await clearAway(world, held);
  }
}

/** The link alone is no right: it may be used an hour after its maker was disabled. */
async function mayBeDone({ table }: JobWorld, { companyId, createdBy }: StoredImport): Promise<boolean> {
  const user = StoredUser.parse(await table.get(keys.user(companyId, createdBy)));
  return user.isActive && may({ ...user, userId: user.id }, "canManageProspects");
}

/** As many steps as there is time for. */
async function step(world: JobWorld, held: HeldImport): Promise<void> {
  const { companyId, id } = held.stored;
  const names = await knownNames(world, companyId, id);
  if (held.job.progress.step === "check" && !(await checkFile(world, held, names))) return handOver(world, held);
  if (held.stored.dryRun === true || held.job.total?.prospect === 0) {
    await completeWithout(world, held);
    return tidy(world, held.stored);
  }
  if (held.job.progress.step === "write") {
    const known = await planRows(world, held, names);
    if (!(await writeRows(world, held, known))) return handOver(world, held);
    const progress = { ...held.job.progress, step: "publish" as const };
    await held.save({ job: { ...held.job, progress } });
  }
  if (held.isLate(PUBLISH_MS)) {
    await held.release({});
    return handOver(world, held);
  }
  await publishRows(world, held);
  await tidy(world, held.stored);
}

/** What is lost here is found by the sweeper. */
async function handOver({ jobs }: JobWorld, { stored: { companyId, id } }: HeldImport): Promise<void> {
  await jobs.send({ kind: "import", companyId, id });
}

/** Of an import that nobody completes any more. */
async function clearAway(world: JobWorld, held: HeldImport): Promise<void> {
  const { companyId, id, job } = held.stored;
  await clear(world.table, held.stored);
  if (job !== undefined) {
    const { upload } = job.progress.report ?? { upload: null };
    if (upload !== null) await world.objects.abortParts(fileKeys.report(companyId, id), upload);
    await world.objects.remove(fileKeys.uploaded(companyId, id));
    await tidy(world, held.stored);
  }
  await held.end({ updatedAt: iso(world.clock.now()) });
}
