/** The API requests that read bulk jobs, and the form in which the API returns a job. */
import * as z from "zod/mini";
import { type Caller, isAdmin } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import type { Job, JobPage, JobQuery } from "#shared/jobs/bulk/schema.ts";
import { countsInChunk, plus, StoredBulk, sumOf } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";
import { userSummary } from "#shared/reference/users.ts";
import { Id } from "#shared/schema.ts";

const mayRead = (caller: Caller, { createdBy }: Pick<StoredBulk, "createdBy">): boolean =>
  isAdmin(caller) || createdBy === caller.userId;

/** Returns the error of a request that the API refuses because of another job. The error names this job only to users who may see it. */
export const excludedBy = (caller: Caller, job: StoredBulk, reason: string): ApiError =>
  mayRead(caller, job)
    ? new ApiError("conflict", `The job ${job.id} ${reason}.`, { location: `/api/jobs/${job.id}` })
    : new ApiError("conflict", "Another job is running.");

export async function findJob(context: ReadContext, caller: Caller, id: number): Promise<StoredBulk> {
  const stored = await storedJob(context.table, caller.companyId, id);
  if (stored === undefined || !mayRead(caller, stored)) throw notFound("job");
  return stored;
}

export async function present(context: ReadContext, stored: StoredBulk): Promise<Job> {
  const { companyId, undoneBy } = stored;
  const [names, undo] = await Promise.all([
    currentDictionary(context, companyId),
    undoneBy === undefined ? undefined : storedJob(context.table, companyId, undoneBy),
  ]);
  return presentJob(stored, names, undo !== undefined && !isFruitless(undo));
}

export async function storedJob(table: Reads, companyId: number, id: number): Promise<StoredBulk | undefined> {
  const item = await table.get(keys.bulkJob(companyId, id));
  return item === undefined ? undefined : StoredBulk.parse(item);
}

export const storedJobs = async (table: Reads, companyId: number, ids: readonly number[]): Promise<StoredBulk[]> =>
  (await table.batchGet(ids.map((id) => keys.bulkJob(companyId, id)))).map((row) => StoredBulk.parse(row));

/** Returns true if an undo has ended before it was complete. The job that it undoes can then be undone again. */
export const isFruitless = ({ state }: StoredBulk): boolean => state === "cancelled" || state === "failed";

export const readJob = async (context: ReadContext, caller: Caller, id: number): Promise<Job> =>
  present(context, await findJob(context, caller, id));

const Entry = z.object({ sk: z.string(), id: Id, createdBy: Id });
/** Maximum number of jobs that a request reads. A user who is no admin sees only some of them, so a page may be short or empty. */
const ENTRIES = 1_000;

export async function listJobs(context: ReadContext, caller: Caller, { cursor, limit }: JobQuery): Promise<JobPage> {
  const { companyId } = caller;
  const range = { from: "J#", upTo: `J#${cursor ?? "~"}` };
  const ids: number[] = [];
  let read = 0;
  let last: string | undefined;
  let nextCursor: string | null = null;
  for await (const item of context.table.query({ ...keys.bulkJobs(companyId), ...range, newestFirst: true })) {
    const entry = Entry.parse(item);
    // The range includes the entry of the cursor itself, which the previous page has already contained.
    if (entry.sk === `J#${cursor}`) continue;
    if (ids.length === limit || read === ENTRIES) {
      nextCursor = last?.slice("J#".length) ?? null;
      break;
    }
    read++;
    last = entry.sk;
    if (mayRead(caller, entry)) ids.push(entry.id);
  }
  const [rows, names] = await Promise.all([
    storedJobs(context.table, companyId, ids),
    currentDictionary(context, companyId),
  ]);
  const undos = rows.flatMap(({ undoneBy }) => undoneBy ?? []);
  const undoing = (await storedJobs(context.table, companyId, undos)).filter((undo) => !isFruitless(undo));
  const isUndone = new Set(undoing.map(({ undoes }) => undoes));
  const found = new Map(rows.map((stored) => [stored.id, presentJob(stored, names, isUndone.has(stored.id))]));
  return { items: ids.flatMap((id) => found.get(id) ?? []), nextCursor };
}

/** `isUndone` must be true if another job undoes this one or has undone it. */
export function presentJob(stored: StoredBulk, { users }: Pick<Dictionary, "users">, isUndone = false): Job {
  const { id, kind, state, total, events, createdAt, updatedAt } = stored;
  const counts = plus(stored, countsInChunk(stored));
  const until = isUndone ? undefined : undoableUntilMs(stored);
  return {
    id,
    kind,
    state,
    total,
    ...counts,
    unprocessed: total - sumOf(counts),
    events,
    territoryId: stored.territoryId ?? null,
    undoes: stored.undoes ?? null,
    undoneBy: stored.undoneBy ?? null,
    failure: stored.failure ?? null,
    createdBy: userSummary(users.get(stored.createdBy)),
    createdAt,
    updatedAt,
    undoableUntil: until === undefined ? null : iso(until),
  };
}

/** Returns until when a job can be undone, in milliseconds since 1970. Undefined if the job has not ended or is itself an undo. */
export const undoableUntilMs = ({ kind, endedAt }: StoredBulk): number | undefined =>
  kind === "undo" || kind === "import_undo" || endedAt === undefined
    ? undefined
    : Date.parse(endedAt) + limits.bulkKeptMs;
