/** Checks the file of an import before a row is written, with the statuses, tags and users as they were when the import began. */
import { gunzipSync, gzipSync } from "node:zlib";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { isBlank } from "#shared/blank.ts";
import { folded } from "#shared/caseless.ts";
import type { ApiContext, AppContext } from "#shared/context.ts";
import { packed } from "#shared/db/packed.ts";
import { ApiError, FileGone } from "#shared/errors.ts";
import { ErrorReport, ReportLost } from "#shared/jobs/import/error-report.ts";
import { findMatches, Matches, type ReadLimits } from "#shared/jobs/import/match.ts";
import {
  type Batch,
  batchesOf,
  type FileReading,
  isLast,
  keysOfFile,
  type Matching,
  NewTags,
  plus,
} from "#shared/jobs/import/read-file.ts";
import { beginningOf, type FileColumn, type Progress, type StoredImport } from "#shared/jobs/import/stored.ts";
import type { RunningJob } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import { type Bytes, decoded, type Encoding, encodingOf } from "#shared/prospects/csv/encoding.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { shortened, textAt, titlesOf } from "#shared/prospects/csv/header.ts";
import { openCsv } from "#shared/prospects/csv/read.ts";
import { type Dictionary, freshDictionary } from "#shared/reference/dictionary.ts";
import { StoredStatus, StoredTag } from "#shared/reference/schema.ts";
import { ensureTags } from "#shared/reference/values.ts";

/** The part of `RunningJob` that the steps of an import need. An import within a request has no row until its file is checked. */
export type ImportWork = Pick<RunningJob<StoredImport>, "stored" | "isLate" | "save" | "heartbeat">;

interface Size {
  readonly rows: number;
  readonly updates: number;
  /** Maximum number of errors that the row of the import contains. */
  readonly errors: number;
  readonly reads: ReadLimits;
  readonly tooMany: (what: "rows" | "updates") => Error;
}

const inRequest: Size = {
  rows: limits.importRows,
  updates: limits.importUpdates,
  errors: limits.importRows,
  reads: { prospects: limits.importMatchProspects, blocks: limits.importMatchBlocks },
  tooMany: (what) =>
    new ApiError(
      "payload_too_large",
      `The file may ${what === "rows" ? `hold at most ${limits.importRows} rows` : `update at most ${limits.importUpdates} prospects`}. For larger ones make an import job: POST /api/prospects/imports.`,
    ),
};

const byUpload: Size = {
  rows: limits.jobRows,
  updates: limits.jobRows,
  errors: limits.jobErrors,
  reads: { prospects: Number.POSITIVE_INFINITY, blocks: Number.POSITIVE_INFINITY },
  tooMany: () => new BadFile(`The file may hold at most ${limits.jobRows} rows.`),
};

export const sizeOf = ({ upload }: StoredImport): Size => (upload === undefined ? inRequest : byUpload);

/** An import renews its lease after this many milliseconds. Without a renewal, the lease expires after two minutes. */
export const LEASE_RENEWAL_MS = 60_000;

export function fileOf({ objects }: ImportContext, stored: StoredImport) {
  if (stored.etag === undefined) throw new Error("the file is not uploaded yet");
  return objects.read(importKeys.uploaded(stored), stored.etag);
}

/** Renews the lease between the chunks: over a slow connection, reading a large file takes longer than the lease lasts. */
async function* bytesOf(context: ImportContext, job: ImportWork): AsyncGenerator<Uint8Array> {
  for await (const chunk of fileOf(context, job.stored)) {
    await job.heartbeat({}, LEASE_RENEWAL_MS);
    yield chunk;
  }
}

export interface OpenFile extends FileReading {
  readonly names: ImportNames;
}

/** Throws BadFile if the file is not CSV, or lacks the column by which rows are matched. */
export async function openFile(context: ImportContext, job: ImportWork, caller: Caller): Promise<OpenFile> {
  const encoding = await fileEncoding(context, job);
  const matching = await fileMatching(context, job, caller, encoding);
  const names = await jobNames(context, job.stored);
  return { encoding, matching, mapping: job.stored.mapping, dictionary: names.dictionary, names };
}

/** Throws BadFile if the file is a workbook of a spreadsheet program (such as xlsx) instead of text. */
async function fileEncoding(context: ImportContext, job: ImportWork): Promise<Encoding> {
  const { encoding: known } = job.stored;
  if (known !== undefined) return known;
  const encoding = await encodingOf(bytesOf(context, job));
  await job.save({ encoding });
  return encoding;
}

async function fileMatching(
  context: ImportContext,
  job: ImportWork,
  caller: Caller,
  encoding: Encoding,
): Promise<Matching | undefined> {
  const { mapping, matching } = job.stored;
  if (matching === undefined) return undefined;
  const key = importKeys.matches(job.stored);
  try {
    return { ...matching, matches: Matches.fromBytes(gunzipSync(await context.objects.get(key))) };
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
  }
  const { rows, reads } = sizeOf(job.stored);
  const reading = { encoding, mapping, by: matching.by, rowLimit: rows };
  const matches = await findMatches(context.table, caller, await keysOfFile(bytesOf(context, job), reading), {
    onProgress: () => job.heartbeat({}, LEASE_RENEWAL_MS),
    most: reads,
  });
  await context.objects.put(key, gzipSync(matches.bytes), "application/gzip");
  return { ...matching, matches };
}

/** Saves the columns of a file without a known header, as the result of a dry run. Throws BadFile if the file is not text. */
export async function showColumns(context: ImportContext, job: ImportWork): Promise<void> {
  const columns = await columnsOf(fileOf(context, job.stored), await fileEncoding(context, job));
  await job.save({ columns, ignoredColumns: [...new Set(columns.map(({ header }) => shortened(header)))] });
}

interface Found extends Pick<Progress, "done" | "row" | "updated"> {
  readonly warnings: number;
  readonly ignoredColumns: readonly string[];
}

const added = ({ done, updated, warnings }: Found, batch: Batch): Found => ({
  done: plus(done, batch),
  row: batch.row,
  updated: updated + batch.changes.length,
  warnings: warnings + batch.warnings,
  ignoredColumns: batch.ignoredColumns ?? [],
});

/**
 * Returns false if the time is too short for the remaining rows. Throws BadFile or ApiError if the file cannot be imported, and ReportLost
 * if the check must be repeated from the beginning.
 */
export async function checkFile(context: ImportContext, job: ImportWork, file: FileReading): Promise<boolean> {
  const { stored } = job;
  const { progress } = stored;
  const size = sizeOf(stored);
  const tags = new NewTags(file.dictionary, progress.newTags);
  const report = await ErrorReport.open(context.objects, stored, size.errors);
  // The counts start at those of the checkpoint. Clients may have seen higher ones, because each renewal of the lease stores the present
  // counts.
  let found: Found = { ...progress, warnings: stored.warnings, ignoredColumns: [] };
  const counts = () => ({
    processed: found.done.prospect + found.updated + report.count,
    skipped: report.count,
  });
  for await (const batch of batchesOf(fileOf(context, stored), { ...file, tags, after: found.row })) {
    found = added(found, batch);
    await report.add(batch.faults);
    if (counts().processed > size.rows) throw size.tooMany("rows");
    if (found.updated > size.updates) throw size.tooMany("updates");
    if (job.isLate() && !isLast(batch)) {
      const { done, row, updated, warnings } = found;
      const at = { done, row, updated, skipped: report.count, newTags: tags.values };
      const state = { ...progress, ...at, report: await report.checkpoint(row) };
      await job.save({ ...counts(), warnings, errors: report.shown, runs: 0, progress: state });
      return false;
    }
    await job.heartbeat(counts());
  }
  await job.save({ ...counts(), ...resultOf(stored, found), ...(await stateAfter(report, tags)) });
  return true;
}

const resultOf = ({ dryRun }: StoredImport, { done, updated, warnings, ignoredColumns }: Found) => ({
  imported: done.prospect,
  // Only a dry run shows the number of rows that would update a prospect.
  updated: dryRun ? updated : 0,
  warnings,
  ignoredColumns: [...ignoredColumns],
  total: done,
  changes: updated,
});

const stateAfter = async (report: ErrorReport, tags: NewTags) => ({
  errors: report.shown,
  hasReport: await report.finish(),
  runs: 0,
  progress: { ...beginningOf("write"), newTags: tags.values },
});

/** Executes a step again from its beginning in the next invocation if the parts of its error report are gone. */
export async function unlessReportLost(job: ImportWork, step: () => Promise<boolean>): Promise<boolean> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof ReportLost)) throw error;
    const { id, progress, processed, skipped } = job.stored;
    const { step } = progress;
    log.warn("step of an import restarted", { id, step, ...errorFields(error) });
    const counts = step === "check" ? { processed: 0, skipped: 0 } : { processed, skipped };
    await job.save({ ...counts, errors: packed([]), progress: beginningOf(step) });
    return false;
  }
}

const SAMPLED_ROWS = 1_000;

/** Matches characters that no CSV file contains. The first rows of a PDF file may have none of them, but the file begins with `%PDF-`. */
const notText = /^%PDF-|[[\p{Cc}&&\p{ASCII}]--[\t-\r]]|\p{Cn}|\uFFFD/v;

function requireText(cells: readonly string[]): void {
  if (!cells.some((cell) => notText.test(cell))) return;
  throw new BadFile("The file is binary, such as a PDF or a picture, and not CSV. Save the table as CSV UTF-8.");
}

/** Returns the columns with a header, each with its first values. Throws BadFile if the file is not text. */
export async function columnsOf(bytes: Bytes, encoding: Encoding): Promise<FileColumn[]> {
  const { rows } = await openCsv(decoded(bytes, encoding));
  const { value: first } = await rows.next();
  requireText(first?.cells ?? []);
  const columns = titlesOf(first?.cells ?? [])
    .map((title, position) => ({ position, header: title.slice(0, limits.csvHeader), samples: [] as string[] }))
    .filter(({ header }) => header !== "")
    .slice(0, limits.mappedColumns);
  let count = 0;
  for await (const { cells } of rows) {
    requireText(cells);
    for (const { position, samples } of columns) {
      const text = textAt(cells, position);
      if (samples.length < limits.columnSamples && !isBlank(text))
        samples.push(text.slice(0, limits.columnSample).toWellFormed());
    }
    if (++count === SAMPLED_ROWS) break;
  }
  return columns.map(({ header, samples }) => ({ header, samples }));
}

export type ImportContext = ApiContext & Pick<AppContext, "objects">;

export interface ImportNames {
  readonly dictionary: Dictionary;
  /** Maps the case-folded value of each tag to its id. Tags that the import has created are included. */
  readonly tagIds: ReadonlyMap<string, number>;
}

function importNames(dictionary: Dictionary, created: Iterable<readonly [string, number]> = []): ImportNames {
  const known = [...dictionary.tags.values()].map(({ id, value }) => [folded(value), id] as const);
  return { dictionary, tagIds: new Map([...known, ...created]) };
}

const StoredNames = z.object({
  version: z.int(),
  statuses: z.array(StoredStatus),
  tags: z.array(StoredTag),
  users: z.array(StoredUser),
  made: z.array(z.tuple([z.string(), z.int()])),
});

/** Returns statuses, users and tags as they were when the job began, and the tags that it has created. The first invocation stores them. */
export async function jobNames(context: ImportContext, job: JobId): Promise<ImportNames> {
  try {
    const bytes = await context.objects.get(importKeys.names(job));
    const stored = StoredNames.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
    const byId = <T extends { readonly id: number }>(entries: readonly T[]) => new Map(entries.map((e) => [e.id, e]));
    const { version, statuses, tags, users, made } = stored;
    return importNames({ version, statuses: byId(statuses), tags: byId(tags), users: byId(users) }, made);
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
  }
  return storeNames(context, job, await freshDictionary(context, job.companyId), []);
}

/** Creates missing tags, and stores their ids for later invocations. Throws BadFile if the company would have too many tags. */
export async function addTags(
  context: ImportContext,
  job: JobId,
  { dictionary }: ImportNames,
  newTags: readonly string[],
): Promise<ImportNames> {
  const made = await ensureTags(context, job.companyId, newTags).catch((error: unknown) => {
    throw error instanceof ApiError && error.code === "conflict" ? new BadFile(error.message) : error;
  });
  return storeNames(context, job, dictionary, [...made]);
}

async function storeNames(
  { objects }: ImportContext,
  job: JobId,
  dictionary: Dictionary,
  made: [string, number][],
): Promise<ImportNames> {
  const { version, statuses, tags, users } = dictionary;
  const stored: z.infer<typeof StoredNames> = {
    version,
    statuses: [...statuses.values()],
    tags: [...tags.values()],
    users: [...users.values()],
    made,
  };
  await objects.put(importKeys.names(job), Buffer.from(JSON.stringify(stored)), "application/json");
  return importNames(dictionary, made);
}
