/** Creates companies with prospects for the tests of bulk jobs. Chunks have four records, so that few records fill several chunks. */
import type { Caller } from "#shared/auth/caller.ts";
import type { JobMessage } from "#shared/aws/sqs.ts";
import type { JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { membersOf, readResults } from "#shared/jobs/bulk/files.ts";
import { readQueue } from "#shared/jobs/bulk/queue.ts";
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import type { NewBulk } from "#shared/jobs/bulk/schema.ts";
import { hasEnded, type StoredAction, StoredBulk, type StoredResult } from "#shared/jobs/bulk/stored.ts";
import { LEASE_MS, runJob } from "#shared/jobs/job.ts";
import { type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { createBulk, createProspect, createTag, startJob } from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import type { FaultyJobs } from "./faulty-jobs.ts";

export const SMALL_CHUNK = 4;

type Harness = Pick<FaultyJobs, "sound">;

/** A queue that accepts each message and delivers none. */
export const silent: JobContext["jobs"] = { send: async () => undefined, returnIn: async () => undefined };
/** Settings with which a request to pause, resume or cancel a job does not wait until the running job has stopped. */
export const impatient = { tries: 0, ms: 0 };

export interface Stage extends Company {
  readonly ids: readonly number[];
  readonly statusIds: readonly number[];
  readonly tagId: number;
}

export async function newStage(harness: Harness, count: number): Promise<Stage> {
  const context = harness.sound();
  const company = await newCompany(context);
  const { companyId } = company.caller;
  const tag = await createTag(context, companyId, { value: "hail", color: "#DC2626" });
  const { statuses } = await freshDictionary(context, companyId);
  const ids: number[] = [];
  for (let i = 0; i < count; i++) ids.push((await createProspect(context, company.caller, { name: `n${i}` })).id);
  return { ...company, ids, statusIds: [...statuses.keys()], tagId: tag.id };
}

/** Divides the prospects `ids` into chunks of four. An undo has the prospects that the undone job has changed, in that job's chunks. */
export const smallChunks =
  (ids: readonly number[]): typeof membersOf =>
  (objects, job) => {
    if (job.kind === "undo") return membersOf(objects, job);
    return async (chunk) => ids.slice(chunk * SMALL_CHUNK, (chunk + 1) * SMALL_CHUNK).map((id) => ({ id }));
  };

export async function newJob(
  harness: Harness,
  { caller, ids }: Stage,
  action: StoredAction,
  by: Caller = caller,
): Promise<JobMessage> {
  const context = harness.sound();
  const id = await context.ids.next();
  const names = await freshDictionary(context, caller.companyId);
  const chunks = Math.ceil(ids.length / SMALL_CHUNK);
  const job = { id, kind: "prospect_bulk" as const, events: "summary" as const, total: ids.length, chunks, action };
  await startJob(context, by, names, job);
  return { kind: "bulk", companyId: caller.companyId, id };
}

/** Creates a job as the API does, with chunks of the usual size. By default, no queue message is sent, so the test executes the job. */
export async function requestedJob(
  context: JobContext,
  { caller, ids }: Pick<Stage, "caller" | "ids">,
  action: NewBulk["action"],
  jobs: Pick<JobContext["jobs"], "send"> = silent,
): Promise<JobMessage> {
  const created = await createBulk(context, { ...context, jobs }, caller, { ids: [...ids], action });
  if (!("id" in created)) throw new Error("a dry run is no job");
  return { kind: "bulk", companyId: caller.companyId, id: created.id };
}

/** Returns a function for the remaining time of an execution: enough for `chunks` chunks, and then 0, so that the job stops. */
export function timeFor(chunks: number): () => number {
  let asked = 0;
  return () => (asked++ < chunks ? 300_000 : 0);
}

/** Executes a job once. Returns false if the execution has failed. */
export async function runOnce(
  context: JobContext,
  { ids }: Pick<Stage, "ids">,
  job: JobMessage,
  remainingMs = (): number => 300_000,
  members = smallChunks(ids),
): Promise<boolean> {
  try {
    await runJob(bulkJob(members), context, job, remainingMs);
    return true;
  } catch {
    return false;
  }
}

export const storedJob = async (harness: Harness, { companyId, id }: JobMessage): Promise<StoredBulk> =>
  StoredBulk.parse(await harness.sound().table.get(keys.bulkJob(companyId, id)));

export const unprocessed = ({ total, changed, unchanged, skipped, failed }: StoredBulk): number =>
  total - changed - unchanged - skipped - failed;

export async function resultsOf(harness: Harness, job: JobMessage): Promise<StoredResult[]> {
  const { done } = await storedJob(harness, job);
  const all: StoredResult[] = [];
  for (let chunk = 0; chunk < done; chunk++) all.push(...(await readResults(harness.sound().objects, job, chunk)));
  return all;
}

export async function rowsOf(
  harness: Harness,
  { caller, ids }: Pick<Stage, "caller" | "ids">,
): Promise<StoredProspect[]> {
  const { table } = harness.sound();
  const items = await Promise.all(ids.map((id) => table.get(keys.prospect(caller.companyId, id))));
  return items.map((item) => storedProspect(item));
}

export const queueOf = (harness: Harness, { caller }: Stage) => readQueue(harness.sound().table, caller.companyId);

/** Removes all faults, and executes the job until it is over. Each execution starts after the lease of the previous one has expired. */
export async function endOf(
  harness: Pick<FaultyJobs, "sound" | "heal">,
  now: { ms: number },
  stage: Pick<Stage, "ids">,
  job: JobMessage,
  { members, isOver = hasEnded }: { members?: typeof membersOf; isOver?: (job: StoredBulk) => boolean } = {},
): Promise<StoredBulk> {
  harness.heal();
  for (let runs = 0; runs < 40; runs++) {
    const stored = await storedJob(harness, job);
    if (isOver(stored)) return stored;
    now.ms += LEASE_MS + 1_000;
    await runOnce(harness.sound(), stage, job, undefined, members);
  }
  throw new Error("the job never ends");
}
