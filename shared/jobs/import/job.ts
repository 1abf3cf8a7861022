/** One run of the work on an import by an upload: begins it, goes on where another run ended, or removes what it has left. */
import { may } from "#shared/auth/caller.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { JobContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { FileGone, isTransient } from "#shared/errors.ts";
import { abandon, clear } from "#shared/jobs/import/abandon.ts";
import { checkFile } from "#shared/jobs/import/check.ts";
import { HeldImport } from "#shared/jobs/import/lease.ts";
import { knownNames } from "#shared/jobs/import/names.ts";
import { completeWithout, PUBLISH_MS, publishRows, tidy } from "#shared/jobs/import/publish.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import { StoredImport, type StoredJob } from "#shared/jobs/import/schema.ts";
import { planRows, writeRows } from "#shared/jobs/import/write.ts";
import { JobLost } from "#shared/jobs/lease.ts";
import { limits } from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import { BadFile } from "#shared/prospects/csv/bad-file.ts";

/** Runs in a row that died, or failed by a fault of our own code, without progress: then the import is given up. */
const FRUITLESS_RUNS = 10;

interface Place {
  readonly companyId: number;
  readonly id: number;
}

/** Safe to repeat, to kill at any point and to run twice at once. Throws JobLost. */
export async function runImport(
  context: JobContext,
  { companyId, id }: Place,
  remainingMs: () => number,
): Promise<void> {
  const item = await context.table.get(keys.import(companyId, id));
  if (item === undefined) return;
  const stored = StoredImport.parse(item);
  const held = new HeldImport(context, stored, remainingMs);
  if (stored.state === "completed") return item.dueAt === undefined ? undefined : held.end({});
  if (stored.runsUntil > context.clock.now()) return;
  if (stored.state === "failed" || stored.state === "cancelled") return clearAway(context, held);
  if (stored.job === undefined) return void (await abandon(context, stored));
  if (stored.state === "awaiting_upload" && !(await take(context, held, stored.job))) return;
  if (held.stored.state === "failed") return clearAway(context, held);
  await work(context, held);
}

/** False: there is nothing to be done yet. */
async function take({ objects, clock }: JobContext, held: HeldImport, job: StoredJob): Promise<boolean> {
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

async function work(context: JobContext, held: HeldImport): Promise<void> {
  if (held.job.runs >= FRUITLESS_RUNS) {
    await fail(held, "The import could not be completed.");
    return clearAway(context, held);
  }
  if (!(await mayBeDone(context, held.stored))) {
    await fail(held, "Whoever began the import may not import any more.");
    return clearAway(context, held);
  }
  await held.save({ job: { ...held.job, runs: held.job.runs + 1 } });
  try {
    await step(context, held);
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
    await clearAway(context, held);
  }
}

/** The link alone is no right: it may be used an hour after its maker was disabled. */
async function mayBeDone({ table }: JobContext, { companyId, createdBy }: StoredImport): Promise<boolean> {
  const user = StoredUser.parse(await table.get(keys.user(companyId, createdBy)));
  return user.isActive && may({ ...user, userId: user.id }, "canManageProspects");
}

/** As many steps as there is time for. */
async function step(context: JobContext, held: HeldImport): Promise<void> {
  const { companyId, id } = held.stored;
  const names = await knownNames(context, companyId, id);
  if (held.job.progress.step === "check" && !(await checkFile(context, held, names))) return handOver(context, held);
  if (held.stored.dryRun === true || held.job.total?.prospect === 0) {
    await completeWithout(context, held);
    return tidy(context, held.stored);
  }
  if (held.job.progress.step === "write") {
    const known = await planRows(context, held, names);
    if (!(await writeRows(context, held, known))) return handOver(context, held);
    const progress = { ...held.job.progress, step: "publish" as const };
    await held.save({ job: { ...held.job, progress } });
  }
  if (held.isLate(PUBLISH_MS)) {
    await held.release({});
    return handOver(context, held);
  }
  await publishRows(context, held);
  await tidy(context, held.stored);
}

/** What is lost here is found by the sweeper. */
async function handOver({ jobs }: JobContext, { stored: { companyId, id } }: HeldImport): Promise<void> {
  await jobs.send({ kind: "import", companyId, id });
}

/** Of an import that nobody completes any more. */
async function clearAway(context: JobContext, held: HeldImport): Promise<void> {
  const { companyId, id, job } = held.stored;
  await clear(context.table, held.stored);
  if (job !== undefined) {
    const { upload } = job.progress.report ?? { upload: null };
    if (upload !== null) await context.objects.abortParts(fileKeys.report(companyId, id), upload);
    await context.objects.remove(fileKeys.uploaded(companyId, id));
    await tidy(context, held.stored);
  }
  await held.end({ updatedAt: iso(context.clock.now()) });
}
