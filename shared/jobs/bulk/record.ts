/** Handles one record of a bulk job. A written row contains the id of the job, so that a later invocation does not write it again. */
import type { Caller } from "#shared/auth/caller.ts";
import type { JobContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { LeaseLost } from "#shared/db/lease.ts";
import { optimistic } from "#shared/db/plan.ts";
import { ApiError, isDeploymentFault, isTransient } from "#shared/errors.ts";
import { decisions } from "#shared/jobs/bulk/kinds.ts";
import type { Member, StoredBulk, StoredResult } from "#shared/jobs/bulk/stored.ts";
import { errorFields, log } from "#shared/log.ts";
import { differing, indexNotesAgain, isEmpty, writeByJob } from "#shared/prospects/bulk-write.ts";
import { isInScope, isPublished } from "#shared/prospects/read.ts";
import { type BulkFields, type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

export interface Handling {
  readonly context: JobContext;
  readonly job: StoredBulk;
  /** The user who began the job, with current rights. Undefined if the user has lost the right: no further record is then written. */
  readonly caller: Caller | undefined;
  readonly names: Dictionary;
  /** Returns the end of the job's lease, in milliseconds since 1970. */
  readonly heldUntil: () => number;
}

/** If the lease ends within this many milliseconds, no record is begun, because all writes must end before the lease does. */
const CALLS_MS = 45_000;

/** Reads in batches, because an invocation that repeats a chunk after a crash reads many records that are already written. */
export async function readRows(
  { table }: JobContext,
  { companyId }: Pick<StoredBulk, "companyId">,
  members: readonly Member[],
): Promise<(member: Member) => Item | undefined> {
  const items = await table.batchGet(members.map(({ id }) => keys.prospect(companyId, id)));
  const rows = new Map<unknown, Item>(items.map((item) => [item.id, item]));
  return ({ id }) => rows.get(id);
}

/** Throws LeaseLost, transient errors and faults of the deployment: the job is then repeated. Other errors become the record's result. */
export async function handleRecord(handling: Handling, member: Member, row: Item | undefined): Promise<StoredResult> {
  const { id } = member;
  const key = keys.prospect(handling.job.companyId, id);
  let attempts = 0;
  try {
    return await optimistic(async () =>
      handleOnce(handling, member, attempts++ === 0 ? row : await handling.context.table.get(key)),
    );
  } catch (error) {
    if (error instanceof ApiError) return { id, outcome: "failed", code: error.code, detail: error.message };
    if (error instanceof LeaseLost || isTransient(error) || isDeploymentFault(error)) throw error;
    log.error("record of a bulk job failed", { id, job: handling.job.id, ...errorFields(error) });
    return { id, outcome: "failed", code: "internal", detail: FAULT };
  }
}

/**
 * Returns the result of a record that an interrupted invocation of this job has written, or undefined. Users may have changed the record
 * since. If the job has restored the prospect, its notes are indexed here, because that invocation may not have done it.
 */
async function writtenBy(
  { table }: JobContext,
  job: StoredBulk,
  { id, bulk }: StoredProspect,
): Promise<StoredResult | undefined> {
  if (bulk?.jobId !== job.id) return undefined;
  const { before, after } = bulk;
  if (isRestored(after)) await indexNotesAgain(table, job.companyId, id);
  return { id, outcome: "changed", before, after };
}

const isRestored = (after: BulkFields | undefined): boolean => after?.deletedAt === null;

/** Returns the result of a record of a job that fails: `changed` if an earlier invocation has written it, otherwise `failed`. */
export async function settleRecord(
  context: JobContext,
  job: StoredBulk,
  { id }: Member,
  row: Item | undefined,
): Promise<StoredResult> {
  const written = row === undefined ? undefined : await writtenBy(context, job, storedProspect(row));
  return written ?? { id, outcome: "failed", code: "internal", detail: FAULT };
}

const FAULT = "Something went wrong on our side.";

async function handleOnce(
  { context, job, caller, names, heldUntil }: Handling,
  member: Member,
  item: Item | undefined,
): Promise<StoredResult> {
  const { id } = member;
  const nowMs = context.clock.now();
  // Nothing may be written after the end of the lease. The next invocation may then have ended the job, and a request that changes the
  // user's rights no longer waits for the job.
  if (nowMs + CALLS_MS >= heldUntil()) throw new LeaseLost("the lease of the job has expired");
  if (item === undefined) return { id, outcome: "skipped", code: "not_found" };
  const current = storedProspect(item);
  const written = await writtenBy(context, job, current);
  if (written !== undefined) return written;
  if (caller === undefined) return { id, outcome: "unprocessed" };
  const isSeen = isInScope(caller, current) && (await isPublished(context.table, job.companyId, current.importId));
  if (!isSeen) return { id, outcome: "skipped", code: "not_found" };
  const decision = decisions[job.kind](job, { current, item, member, names, caller, nowMs });
  if ("skipped" in decision) return { id, outcome: "skipped", code: decision.skipped };
  const wanted = differing(current, decision.fields);
  if (isEmpty(wanted)) return { id, outcome: "unchanged" };
  const mark = { jobId: job.id, events: job.events };
  const write = { after: wanted, job: mark, dictionary: names, deletedIf: decision.deletedIf };
  const { before, after } = await writeByJob(context, caller, current, write);
  if (isRestored(after)) await indexNotesAgain(context.table, job.companyId, id);
  return { id, outcome: "changed", before, after };
}
