/** Creates bulk jobs: chooses the records, stores their ids, and puts the job into the company's queue. */
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { type Caller, isAdmin } from "#shared/auth/caller.ts";
import { requireScope } from "#shared/auth/scopes.ts";
import type { Found } from "#shared/company-index/read/company-index.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { pageOf } from "#shared/company-index/search/page.ts";
import type { ApiContext, AppContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, badReference } from "#shared/errors.ts";
import { validate } from "#shared/http/validate.ts";
import { chunksOf, storeMembers } from "#shared/jobs/bulk/files.ts";
import {
  type BulkContext,
  type Guard,
  type NewJob,
  readQueue,
  requireRoom,
  startJob,
} from "#shared/jobs/bulk/queue.ts";
import type { BulkAction, BulkDryRun, Job, NewBulk } from "#shared/jobs/bulk/schema.ts";
import type { StoredAction } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { nextAppointment } from "#shared/prospects/agenda.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import { isPublished, isVisible } from "#shared/prospects/read.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";

export type BulkServices = Pick<BulkContext, "jobs"> & Pick<AppContext, "objects">;

const FilterPart = z.object({ filter: ProspectFilter });

/** The prospects chosen for a job. `ids` yields all their ids, and `first` returns the first ones, for the samples of a dry run. */
export interface Chosen {
  readonly names: Dictionary;
  readonly count: number;
  readonly ids: () => Iterable<number>;
  readonly first: (count: number) => readonly number[];
}

export async function createBulk(
  context: ApiContext,
  services: BulkServices,
  caller: Caller,
  input: NewBulk,
): Promise<Plan<Job | BulkDryRun>> {
  const { action, dryRun = false, events = "summary", expectedCount } = input;
  requireScope(caller, action.delete === true ? "prospects:delete" : "prospects:write");
  if (action.delete === true && !isAdmin(caller)) {
    throw new ApiError("permission_denied", "Only admins and owners may delete prospects.");
  }
  const chosen = await choose(context, caller, input);
  requireReferences(chosen.names, action);
  return beginBulk(context, services, caller, chosen, {
    expectedCount,
    dryRun,
    job: { kind: "prospect_bulk", events, action: storedAction(action) },
  });
}

interface Beginning {
  readonly expectedCount: number | undefined;
  readonly dryRun: boolean;
  readonly job: Omit<NewJob, "id" | "total" | "chunks">;
  /** Stores further data that the job needs. It is called before the job is written. */
  readonly prepare?: (id: number) => Promise<void>;
  readonly guard?: Guard;
}

/** Throws `count_mismatch` if the number of chosen prospects is not `expectedCount`. A dry run creates no job. */
export async function beginBulk(
  context: ApiContext,
  services: BulkServices,
  caller: Caller,
  chosen: Chosen,
  { expectedCount, dryRun, job, prepare, guard }: Beginning,
): Promise<Plan<Job | BulkDryRun>> {
  const { companyId } = caller;
  const { count } = chosen;
  requireAllowedCount(count);
  if (dryRun) return unchanged({ count, samples: await samplesOf(context, caller, chosen) });
  if (expectedCount !== undefined && count !== expectedCount) {
    const message = `is ${expectedCount}, but the request would change ${count} prospects`;
    const faults = [{ pointer: "/expectedCount", code: "count_mismatch", message }];
    throw new ApiError("count_mismatch", `expectedCount ${message}.`, { faults, members: { actualCount: count } });
  }
  // Refuses the job before the ids are stored if too many jobs wait or are paused. `startJob` checks this again.
  const queue = await readQueue(context.table, companyId);
  requireRoom(queue);
  await guard?.(queue);
  const id = await context.ids.next();
  const [total] = await Promise.all([storeMembers(services.objects, { companyId, id }, chosen.ids()), prepare?.(id)]);
  const made = { ...job, id, total, chunks: chunksOf(total) };
  return startJob({ ...context, ...services }, caller, chosen.names, made, { guard });
}

export function requireAllowedCount(count: number): void {
  if (count <= limits.bulkRecords) return;
  const message = `matches ${count} prospects, and a job may have at most ${limits.bulkRecords}`;
  const faults = [{ pointer: "/filter", code: "too_big", message }];
  throw new ApiError("validation_failed", `The filter ${message}.`, { faults });
}

export const isDryRun = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "samples" in answer;

async function choose(context: ApiContext, caller: Caller, { ids, filter }: NewBulk): Promise<Chosen> {
  const { companyId } = caller;
  if (filter === undefined) {
    const own = [...new Set(ids)];
    const names = await currentDictionary(context, companyId);
    return { names, count: own.length, ids: () => own, first: (count) => own.slice(0, count) };
  }
  // Lists ignore these filters if the user may not use them. A job that ignored them would change prospects that the user does not mean.
  if (!isAdmin(caller) && (filter.assignedToUserId ?? filter.rep) !== undefined) {
    throw new ApiError("permission_denied", "Only admins and owners may choose prospects by their representative.");
  }
  return chosenIn(await findFiltered(context, caller, parsedFilter(filter)));
}

export const parsedFilter = (filter: object): ProspectFilter => validate("body", FilterPart, { filter }).filter;

export function chosenIn({ names, matches }: Found<Dictionary>): Chosen {
  const first = (count: number): number[] => pageOf(matches, 0, count).map(({ id }) => id);
  return { names, count: matches.total, ids: () => idsOf(matches), first };
}

/** Yields the ids in no defined order, because sorting a million of them would need time and memory. */
function* idsOf({ segments, unflushed }: Matches): Generator<number> {
  for (const { inView, rows } of segments) {
    const { ids } = inView.segment.main;
    for (const row of rows) yield at(ids, row);
  }
  for (const { id } of unflushed) yield id;
}

function requireReferences({ statuses, users, tags }: Dictionary, action: BulkAction): void {
  const { currentStatusId, assignedToUserId } = action.set ?? {};
  if (currentStatusId != null && statuses.get(currentStatusId)?.isActive !== true) {
    throw badReference("an active status", "action/set/currentStatusId");
  }
  if (assignedToUserId != null && users.get(assignedToUserId)?.isActive !== true) {
    throw badReference("an active user", "action/set/assignedToUserId");
  }
  for (const field of ["addTagIds", "removeTagIds"] as const) {
    const unknown = (action[field] ?? []).flatMap((id, at) => (tags.has(id) ? [] : [`action/${field}/${at}`]));
    if (unknown.length > 0) throw badReference("a tag", ...unknown);
  }
}

async function samplesOf(
  context: ApiContext,
  caller: Caller,
  { names, first }: Chosen,
): Promise<BulkDryRun["samples"]> {
  const wanted = first(limits.bulkSamples);
  const items = await context.table.batchGet(wanted.map((id) => keys.prospect(caller.companyId, id)));
  const nowMs = context.clock.now();
  const found = await Promise.all(
    items.map(async (item) => {
      const prospect = storedProspect(item);
      if (!isVisible(caller, prospect)) return [];
      if (!(await isPublished(context.table, caller.companyId, prospect.importId))) return [];
      return [presentProspect(prospect, await nextAppointment(context.table, prospect, nowMs), names)];
    }),
  );
  const samples = new Map(found.flat().map((prospect) => [prospect.id, prospect]));
  return wanted.flatMap((id) => samples.get(id) ?? []);
}

const storedAction = ({ set = {}, addTagIds, removeTagIds, delete: deletes }: BulkAction): StoredAction => ({
  statusId: set.currentStatusId,
  assignedToUserId: set.assignedToUserId,
  addTagIds: addTagIds && [...new Set(addTagIds)],
  removeTagIds: removeTagIds && [...new Set(removeTagIds)],
  delete: deletes,
});
