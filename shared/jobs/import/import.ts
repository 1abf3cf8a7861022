/** Imports a file within one request, by the steps of an import job. The files that the steps write stay in memory. */
import type { Caller } from "#shared/auth/caller.ts";
import type { Objects } from "#shared/aws/s3.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, AppContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { Held } from "#shared/db/lease.ts";
import { unpacked } from "#shared/db/packed.ts";
import { stoppedBefore } from "#shared/deadline.ts";
import { ApiError, DeadlinePassed, FileGone } from "#shared/errors.ts";
import type { Commit } from "#shared/http/idempotency.ts";
import {
  checkFile,
  type ImportContext,
  type ImportWork,
  type OpenFile,
  openFile,
  showColumns,
} from "#shared/jobs/import/check.ts";
import {
  clearAbandoned,
  clearFailed,
  completion,
  failUnlessCompleted,
  opening,
} from "#shared/jobs/import/lifecycle.ts";
import type { FileResult } from "#shared/jobs/import/schema.ts";
import { type ImportOptions, newImport, RowFaults, StoredImport } from "#shared/jobs/import/stored.ts";
import { importRows } from "#shared/jobs/import/write.ts";
import { RunningJob } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { UnknownHeader } from "#shared/prospects/csv/header.ts";

/** The bucket gets a copy of each imported file. */
export type RequestContext = ApiContext & { readonly objects: Pick<AppContext["objects"], "put"> };

/** An import stops this long before the deadline, to mark the import as failed and to send the response. */
const FAIL_RESERVE_MS = 3_000;
/** A failed import stops deleting its rows this long before the deadline. The company's next import deletes the remaining rows. */
const CLEAR_RESERVE_MS = 1_000;

/**
 * Imports the file before the deadline of the request. After `payload_too_large` or `validation_failed`, nothing was written. After another
 * error, existing prospects may have changed, but no new prospect is visible, unless the error says that the outcome is unknown. `commit`
 * executes the last transaction. It is called again if the parts of the company index have changed meanwhile.
 */
export async function importFile(
  context: RequestContext,
  caller: Caller,
  bytes: Uint8Array,
  options: ImportOptions,
  commit: Commit,
): Promise<FileResult> {
  const inMemory = { ...context, objects: memoryOf(bytes) };
  const opened = await stoppedBefore(FAIL_RESERVE_MS, async () => {
    const id = options.dryRun === true ? 0 : await context.ids.next();
    const work = unstored({ ...newImport(caller, id, context.clock.now(), options), etag: "" });
    const file = await checkedFile(inMemory, work, caller);
    if (file === undefined || options.dryRun === true) return { result: resultOf(work.stored) };
    await clearAbandoned(context, caller.companyId);
    await context.objects.put(importKeys.sent({ ...caller, id }), bytes, "text/csv");
    return { file, job: await open(context, work.stored) };
  }).catch((error: unknown) => {
    throw error instanceof DeadlinePassed ? late(NOTHING_CREATED, error) : error;
  });
  if (!("result" in opened)) return finish(inMemory, caller, opened, commit);
  await commit({ writes: [], answer: opened.result });
  return opened.result;
}

/** Returns undefined for a dry run of a file without a known header. */
async function checkedFile(context: ImportContext, work: ImportWork, caller: Caller): Promise<OpenFile | undefined> {
  try {
    const file = await openFile(context, work, caller);
    await checkFile(context, work, file);
    return file;
  } catch (error) {
    if (!(error instanceof UnknownHeader && work.stored.dryRun)) throw refused(error);
    await showColumns(context, work).catch((reason: unknown) => {
      throw refused(reason);
    });
    return undefined;
  }
}

function refused(error: unknown): unknown {
  if (!(error instanceof BadFile)) return error;
  const faults = [{ pointer: "/file", code: "invalid_file", message: error.message }];
  return new ApiError("validation_failed", error.message, { faults });
}

/** Imports the rows. If this fails, marks the import as failed and deletes its rows as far as possible. */
async function finish(
  context: ImportContext,
  caller: Caller,
  { file, job }: { readonly file: OpenFile; readonly job: RunningJob<StoredImport> },
  commit: Commit,
): Promise<FileResult> {
  let isCommitting = false;
  const complete = (moves: readonly Write[]): Promise<void> => {
    isCommitting = true;
    const writes = [...moves, ...completion(job, context.clock.now())];
    return commit({ writes, answer: resultOf(job.stored) });
  };
  try {
    await stoppedBefore(FAIL_RESERVE_MS, () => importRows(context, job, caller, file, complete));
  } catch (error) {
    const isCompleted = await failUnlessCompleted(context, job.stored).catch(() => {
      throw isCommitting ? late(UNKNOWN_OUTCOME, error) : timely(error, job.stored);
    });
    // The last transaction succeeded although it seemed to fail.
    if (isCompleted) return resultOf(job.stored);
    // After the deadline, a write of this import may reach the table even after its rows were deleted. So this request does not delete
    // them. They stay invisible until the company's next import or the sweeper deletes them.
    if (!(error instanceof DeadlinePassed)) {
      await stoppedBefore(CLEAR_RESERVE_MS, () => clearFailed(context, job.stored)).catch(() => undefined);
    }
    throw timely(error, job.stored);
  }
  return resultOf(job.stored);
}

const timely = (error: unknown, { changes }: StoredImport): unknown =>
  error instanceof DeadlinePassed ? late(changes === 0 ? NOTHING_CREATED : PARTLY_CHANGED, error) : error;

const late = (detail: string, cause: unknown): ApiError =>
  new ApiError("unavailable", detail, { showsDetail: true, cause });

const AS_JOB = "A file that takes too long can be imported by a job: POST /api/prospects/imports.";
const NOTHING_CREATED = `The request took too long. Nothing was imported, so you can repeat the request. ${AS_JOB}`;
const PARTLY_CHANGED = `The request took too long. It created no prospect, but may have changed some of the prospects that rows match. If you repeat the request, it changes the others. ${AS_JOB}`;
export const UNKNOWN_OUTCOME =
  "The request took too long, and it is unknown whether the file was imported. Repeat it with the same Idempotency-Key, which never imports the file twice. If you sent no key, look for the import in GET /api/prospects/imports before you repeat the request.";

/** Returns an import that has no row in the table yet. Its `save` changes only the object in memory. */
function unstored(stored: StoredImport): ImportWork {
  let current = stored;
  return {
    get stored() {
      return current;
    },
    isLate: () => false,
    save: async (set) => {
      current = { ...current, ...set };
    },
    heartbeat: async () => undefined,
  };
}

/** Writes the row of a checked import, with a lease that ends after the time-out of the function. */
async function open(context: ApiContext, checked: StoredImport): Promise<RunningJob<StoredImport>> {
  const untilMs = context.clock.now() + limits.idempotentRunMs;
  const stored = { ...checked, runsUntil: iso(untilMs) };
  await context.table.transact(opening(stored, untilMs));
  const key = keys.import(stored.companyId, stored.id);
  const lease = { key, schema: StoredImport, attribute: "runsUntil", ms: limits.idempotentRunMs };
  return new RunningJob(context.clock, new Held(context, lease, stored, stored.runsUntil));
}

const resultOf = (stored: StoredImport): FileResult => {
  const { id, dryRun, imported, updated, skipped, encoding, ignoredColumns, warnings, columns, errors } = stored;
  if (encoding === undefined) throw new Error("the file is not read yet");
  return {
    id: dryRun ? null : id,
    dryRun,
    imported,
    updated,
    skipped,
    encoding,
    ignoredColumns,
    warnings,
    columns,
    errors: unpacked(RowFaults, errors),
  };
};

/** Holds the file of the request, and the files of the steps. The steps need no multipart upload, because all errors fit into the row. */
function memoryOf(file: Uint8Array): Objects {
  const files = new Map<string, Uint8Array>();
  const never = () => Promise.reject(new Error("an import within a request has no large file"));
  return {
    put: async (key, bytes) => void files.set(key, bytes),
    get: async (key) => {
      const bytes = files.get(key);
      if (bytes === undefined) throw new FileGone("there is no such file");
      return bytes;
    },
    read: async function* () {
      yield file;
    },
    info: never,
    remove: never,
    beginParts: never,
    putPart: never,
    completeParts: never,
    abortParts: never,
  };
}
