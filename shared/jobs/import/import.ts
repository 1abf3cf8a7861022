/**
 * Imports a file within one request. The new prospects are invisible while the row of their id range contains the import's id. One
 * transaction removes it and adds them to the company index, so that all become visible at the same time.
 */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { addImported } from "#shared/company-index/write/publish.ts";
import type { ApiContext, AppContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import { packed } from "#shared/db/packed.ts";
import { stoppedBefore } from "#shared/deadline.ts";
import { ApiError, DeadlinePassed } from "#shared/errors.ts";
import { columnsOf, namesOf } from "#shared/jobs/import/columns.ts";
import {
  clearAbandoned,
  clearFailed,
  completion,
  failUnlessCompleted,
  opening,
  openingCompleted,
  pieceNames,
} from "#shared/jobs/import/lifecycle.ts";
import { findMatches } from "#shared/jobs/import/match.ts";
import { importNames } from "#shared/jobs/import/names.ts";
import {
  type ChangedRow,
  type Findings,
  keysOfFile,
  type Matching,
  NewTags,
  noFindings,
  plus,
  readRows,
} from "#shared/jobs/import/read-file.ts";
import { type LeasedIds, leaseImportIds, rowsOf } from "#shared/jobs/import/rows.ts";
import type { FileResult } from "#shared/jobs/import/schema.ts";
import { type FileColumn, none, type RowFault, type StoredImport } from "#shared/jobs/import/stored.ts";
import { changeProspects } from "#shared/jobs/import/update.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import type { Draft } from "#shared/prospects/csv/draft.ts";
import { type Encoding, encodingOf } from "#shared/prospects/csv/encoding.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { type Mapping, UnknownHeader } from "#shared/prospects/csv/header.ts";
import type { MatchBy, OnMatch } from "#shared/prospects/csv/key.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { ensureTags } from "#shared/reference/tags.ts";

/** The bucket gets a copy of each imported file. */
export type ImportContext = ApiContext & { readonly objects: Pick<AppContext["objects"], "put"> };

export interface ImportOptions {
  readonly mapping?: Mapping | undefined;
  /** If true, the file is only checked and nothing is written. */
  readonly dryRun?: boolean | undefined;
  readonly matchBy?: MatchBy | undefined;
  readonly onMatch?: OnMatch | undefined;
}

/** An import stops this long before the deadline, to mark the import as failed and to send the response. */
const FAIL_RESERVE_MS = 3_000;
/** A failed import stops deleting its rows this long before the deadline. The company's next import deletes the rest. */
const CLEAR_RESERVE_MS = 1_000;

/** If the import fails, this determines what is deleted and what the error says. */
interface Progress {
  /** Undefined before the import has new prospects to write. */
  stored?: StoredImport;
  result?: FileResult;
  /** True if the transaction that makes the new prospects visible was sent. */
  isCommitting: boolean;
  /** True if the import may have changed existing prospects. */
  isChanging: boolean;
}

/**
 * Imports the file before the deadline of the request. After `payload_too_large` or `validation_failed`, nothing was written. After another
 * error, existing prospects may have changed, but no new prospect becomes visible, except perhaps if the outcome is unknown.
 */
export async function importFile(
  context: ImportContext,
  caller: Caller,
  bytes: Uint8Array,
  options: ImportOptions = {},
): Promise<FileResult> {
  const progress: Progress = { isCommitting: false, isChanging: false };
  try {
    return await stoppedBefore(FAIL_RESERVE_MS, () => imported(context, caller, bytes, options, progress));
  } catch (error) {
    return resultAfter(error, context, progress);
  }
}

/**
 * Returns the result if the last transaction succeeded although it seemed to fail. Otherwise it marks the import as failed, deletes its
 * rows as far as possible, and throws. Remaining rows are invisible, and the next import deletes them.
 */
async function resultAfter(error: unknown, context: ImportContext, progress: Progress): Promise<FileResult> {
  const { stored, result, isCommitting, isChanging } = progress;
  if (stored !== undefined && result !== undefined) {
    try {
      if (await failUnlessCompleted(context, stored)) return result;
      // After the deadline, a write may still reach the table. The next import or the sweeper therefore deletes the rows.
      if (!(error instanceof DeadlinePassed)) {
        await stoppedBefore(CLEAR_RESERVE_MS, () => clearFailed(context, stored)).catch(() => undefined);
      }
    } catch {
      if (isCommitting) throw late(UNKNOWN_OUTCOME, error);
    }
  }
  throw error instanceof DeadlinePassed ? late(isChanging ? PARTLY_CHANGED : NOTHING_CREATED, error) : error;
}

const late = (detail: string, cause: unknown): ApiError =>
  new ApiError("unavailable", detail, { showsDetail: true, cause });

const AS_JOB = "A file that takes too long can be imported by a job: POST /api/prospects/imports.";
const NOTHING_CREATED = `The request took too long. Nothing was imported, so you can repeat the request. ${AS_JOB}`;
const PARTLY_CHANGED = `The request took too long. It created no prospect, but may have changed some of the prospects that rows match. If you repeat the request, it changes the others. ${AS_JOB}`;
/** The detail of the problem if the service does not know whether an import has taken effect. */
export const UNKNOWN_OUTCOME =
  "The request took too long, and it is unknown whether the file was imported. Repeat it with the same Idempotency-Key, which never imports the file twice. If you sent no key, look for the import in GET /api/prospects/imports before you repeat the request.";

async function imported(
  context: ImportContext,
  caller: Caller,
  bytes: Uint8Array,
  { mapping, dryRun = false, matchBy, onMatch = "create" }: ImportOptions,
  progress: Progress,
): Promise<FileResult> {
  const dictionary = await freshDictionary(context, caller.companyId);
  const match = async (encoding: Encoding): Promise<Matching | undefined> => {
    if (matchBy === undefined || onMatch === "create") return undefined;
    const reading = { encoding, mapping, by: matchBy, rowLimit: limits.importRows };
    const fileKeys = await keysOfFile([bytes], reading);
    const most = { prospects: limits.importMatchProspects, blocks: limits.importMatchBlocks };
    return { by: matchBy, onMatch, matches: await findMatches(context.table, caller, fileKeys, { most }) };
  };
  const file = await readFile(bytes, dictionary, { mapping, match, showsColumns: dryRun });
  if (dryRun) return resultOf(null, file);
  return writeFile(context, caller, bytes, dictionary, file, matchBy ?? "id", progress);
}

export interface ReadFile extends Findings {
  readonly encoding: Encoding;
  readonly drafts: readonly Draft[];
  readonly changes: readonly ChangedRow[];
  readonly faults: readonly RowFault[];
  /** The tags in the file that the company does not have yet. */
  readonly newTags: readonly string[];
  readonly warnings: number;
  /** Only if no header is known. */
  readonly columns?: readonly FileColumn[];
}

interface FileOptions {
  readonly mapping?: Mapping | undefined;
  /** If true, a file without a known header is not refused, and the result has its columns. */
  readonly showsColumns?: boolean;
  readonly match?: (encoding: Encoding) => Promise<Matching | undefined>;
}

/** Throws `payload_too_large` if there are too many rows or changes, and `validation_failed` if the file cannot be imported. */
export async function readFile(
  bytes: Uint8Array,
  dictionary: Dictionary,
  { mapping, showsColumns = false, match = async () => undefined }: FileOptions = {},
): Promise<ReadFile> {
  const tags = new NewTags(dictionary);
  const drafts: Draft[] = [];
  const changes: ChangedRow[] = [];
  const faults: RowFault[] = [];
  const findings = noFindings();
  const messages = new Messages();
  let warnings = 0;
  let encoding: Encoding = "utf-8";
  try {
    encoding = await encodingOf([bytes]);
    const matching = await match(encoding);
    for await (const read of readRows([bytes], { encoding, dictionary, tags, mapping, findings, matching })) {
      if (drafts.length + changes.length + faults.length === limits.importRows) throw tooMany("hold", "rows");
      if ("draft" in read) drafts.push(read.draft);
      else if ("change" in read) changes.push(read);
      else faults.push({ row: read.row, message: messages.of(read) });
      if (!("fault" in read)) warnings += read.warnings;
      if (changes.length > limits.importUpdates) throw tooMany("update", "prospects");
    }
    return { drafts, changes, faults, newTags: tags.values, encoding, warnings, ...findings };
  } catch (error) {
    if (!(error instanceof UnknownHeader && showsColumns)) throw refused(error);
    const columns = await columnsOf([bytes], encoding).catch((reason: unknown) => {
      throw refused(reason);
    });
    const found = { ...noFindings(), ignoredColumns: namesOf(columns), columns };
    return { drafts, changes, faults, newTags: [], encoding, warnings, ...found };
  }
}

function refused(error: unknown): unknown {
  if (!(error instanceof BadFile)) return error;
  const pointers = [{ pointer: "/file", code: "invalid_file", message: error.message }];
  return new ApiError("validation_failed", error.message, { faults: pointers });
}

/** The row of the import holds the messages of all rows, and different values cannot be compressed. */
const VALUES_BYTES = 100_000;

/** Shows faulty values until different messages with values have this size together. */
class Messages {
  readonly #shown = new Set<string>();
  #bytes = 0;

  of({ fault, plain = fault }: { readonly fault: string; readonly plain?: string }): string {
    if (this.#shown.has(fault) || fault === plain) return fault;
    this.#bytes += Buffer.byteLength(fault);
    if (this.#bytes > VALUES_BYTES) return plain;
    this.#shown.add(fault);
    return fault;
  }
}

const tooMany = (does: "hold" | "update", what: "rows" | "prospects"): ApiError =>
  new ApiError(
    "payload_too_large",
    `The file may ${does} at most ${does === "hold" ? limits.importRows : limits.importUpdates} ${what}. For larger ones make an import job: POST /api/prospects/imports.`,
  );

type Result = Omit<ReadFile, "newTags" | "isFilled">;

const resultOf = (
  id: number | null,
  { drafts, changes, faults, encoding, ignoredColumns, warnings, columns }: Result,
): FileResult => ({
  id,
  dryRun: id === null,
  imported: drafts.length,
  updated: changes.length,
  skipped: faults.length,
  encoding,
  ignoredColumns: [...ignoredColumns],
  warnings,
  ...(columns !== undefined && { columns: [...columns] }),
  errors: [...faults],
});

async function writeFile(
  context: ImportContext,
  caller: Caller,
  bytes: Uint8Array,
  dictionary: Dictionary,
  read: ReadFile,
  by: MatchBy,
  progress: Progress,
): Promise<FileResult> {
  const { companyId } = caller;
  await clearAbandoned(context, companyId);
  const id = await context.ids.next();
  await context.objects.put(importKeys.sent(companyId, id), bytes, "text/csv");
  const names = importNames(dictionary, await ensureTags(context, companyId, read.newTags));
  // Existing prospects are changed first. A repeated request finds them already changed.
  progress.isChanging = read.changes.length > 0;
  const late = await changeProspects(context, caller, { importId: String(id), by, ...names }, read.changes);
  const file = { ...withLateFaults(read, late.faults), warnings: read.warnings + late.warnings };
  const total = plus(none, file);
  const { first, ...blocks } = await leaseImportIds(context.ids, companyId, id, total);
  const stored = newImport(context, caller, id, file, blocks);
  const result = resultOf(id, file);
  if (file.drafts.length === 0) {
    await context.commit(openingCompleted(stored), result);
    return result;
  }
  await context.table.transact(opening(stored, stored.runsUntil));
  progress.stored = stored;
  progress.result = result;
  const plan = { importId: id, names, now: stored.createdAt, first, total };
  const { items, indexed } = rowsOf(caller, plan, none, file.drafts);
  await context.table.batchPut(items);
  const commit = (moves: readonly Write[]) => {
    progress.isCommitting = true;
    return context.commit([...moves, ...completion(stored, {}, context.clock.now())], result);
  };
  await addImported(context, companyId, indexed, { newId: pieceNames(id), commit, by: caller.userId });
  return result;
}

/** Returns the file with failed changes, whose prospects could no longer be changed, as faults. */
function withLateFaults(file: ReadFile, late: readonly RowFault[]): ReadFile {
  const failed = new Set(late.map(({ row }) => row));
  return {
    ...file,
    changes: file.changes.filter(({ row }) => !failed.has(row)),
    faults: [...file.faults, ...late].sort((a, b) => a.row - b.row),
  };
}

function newImport(
  { clock }: ApiContext,
  { companyId, userId }: Caller,
  id: number,
  { drafts, changes, faults, encoding, ignoredColumns, warnings }: Result,
  blocks: Omit<LeasedIds, "first">,
): StoredImport {
  const nowMs = clock.now();
  const now = iso(nowMs);
  return {
    type: "import",
    id,
    companyId,
    state: "running",
    processed: drafts.length + changes.length + faults.length,
    imported: drafts.length,
    updated: changes.length,
    skipped: faults.length,
    errors: packed(faults),
    encoding,
    ignoredColumns: [...ignoredColumns],
    warnings,
    ...blocks,
    createdBy: userId,
    createdAt: now,
    updatedAt: now,
    version: 1,
    runsUntil: nowMs + limits.idempotentRunMs,
  };
}
