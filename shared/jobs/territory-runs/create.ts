/** Creates runs. Refuses a run if another one works on prospects of the same area. */
import * as z from "zod/mini";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { Objects } from "#shared/aws/s3.ts";
import { emptyArea, polygonArea } from "#shared/company-index/areas.ts";
import type { Area } from "#shared/company-index/criteria.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import type { Plan } from "#shared/db/plan.ts";
import { badReference } from "#shared/errors.ts";
import { validate } from "#shared/http/validate.ts";
import { type BulkServices, beginBulk, chosenBy } from "#shared/jobs/bulk/create.ts";
import { jobsIn } from "#shared/jobs/bulk/queue.ts";
import { excludedBy } from "#shared/jobs/bulk/read.ts";
import type { BulkDryRun, Job } from "#shared/jobs/bulk/schema.ts";
import type { StoredAction, StoredQueue } from "#shared/jobs/bulk/stored.ts";
import { bulkKeys } from "#shared/jobs/s3-keys.ts";
import type { NewRun } from "#shared/jobs/territory-runs/schema.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";
import { packPolygon, unpackPolygon } from "#shared/reference/polygon.ts";
import { getTerritory } from "#shared/territories/territories.ts";

const FilterPart = z.object({ filter: ProspectFilter });

/** A dry run begins no job: it returns the number of prospects and some samples. */
export async function createRun(
  context: ApiContext,
  services: BulkServices,
  caller: Caller,
  territoryId: number,
  input: NewRun,
): Promise<Plan<Job | BulkDryRun>> {
  const { companyId } = caller;
  const { mode, toUserId, fromUserId, expectedCount, dryRun, events = "summary" } = input;
  const [{ polygon }, names] = await Promise.all([
    getTerritory(context, companyId, territoryId),
    currentDictionary(context, companyId),
  ]);
  requireUsers(names, toUserId, fromUserId);
  const from = mode === "assign" ? "nobody" : (fromUserId ?? "anyone");
  const action: StoredAction = { assignedToUserId: toUserId ?? null, from };
  const area = polygon.length === 0 ? emptyArea : polygonArea(polygon);
  const others = new Map<number, Area>();
  const { filter } = validate("body", FilterPart, { filter: input.filter ?? {} });
  // A territory without a polygon has no prospect: the empty set of assignees makes the run choose none.
  const [polygons, assignees] =
    polygon.length === 0 ? [{}, new Set<number | null>()] : [{ polygon }, assigneesOf(caller, from, names)];
  const chosen = await chosenBy(context, caller, { ...filter, ...polygons }, assignees);
  const prepare = (id: number): Promise<void> =>
    services.objects.put(bulkKeys.area(companyId, id), packPolygon(polygon), "application/octet-stream");
  return beginBulk(context, services, caller, chosen, {
    expectedCount,
    dryRun: dryRun === true,
    job: { kind: "territory_run", events, action, territoryId },
    prepare,
    guard: (queue) => refuseOverlap(context, services.objects, caller, { territoryId, area, others }, queue),
  });
}

function requireUsers({ users }: Dictionary, toUserId: number | undefined, fromUserId: number | undefined): void {
  if (toUserId !== undefined && users.get(toUserId)?.isActive !== true)
    throw badReference("an active user", "toUserId");
  // `fromUserId` may name a disabled user, because the prospects of a user who has left are given to others.
  if (fromUserId !== undefined && !users.has(fromUserId)) throw badReference("a user", "fromUserId");
}

/** Returns the assignees whose prospects the run takes and the caller may see. Null stands for unassigned prospects. */
function assigneesOf(caller: Caller, from: StoredAction["from"], { users }: Dictionary): ReadonlySet<number | null> {
  const wanted = from === "nobody" ? [null] : from === "anyone" ? [...users.keys()] : [from ?? null];
  const visible = visibleAssignee(caller);
  return new Set(visible === undefined ? wanted : wanted.filter((id) => id === visible));
}

interface Run {
  readonly territoryId: number;
  readonly area: Area;
  /** The areas of other jobs. They are kept between the two checks of a run, because each polygon is then compared with a segment once. */
  readonly others: Map<number, Area>;
}

/**
 * Throws `conflict` if there is an open run with the same territory, or with a prospect in both polygons, as they were at the
 * creation. Filters are not compared, because a prospect may change and then match both.
 */
async function refuseOverlap(
  context: ReadContext,
  objects: Objects,
  caller: Caller,
  { territoryId, area, others }: Run,
  queue: StoredQueue,
): Promise<void> {
  const { companyId } = caller;
  for (const job of await jobsIn(context.table, companyId, queue)) {
    if (job.territoryId === undefined) continue;
    if (job.territoryId !== territoryId) {
      const other =
        others.get(job.id) ?? polygonArea(unpackPolygon(await objects.get(bulkKeys.area(companyId, job.id))));
      others.set(job.id, other);
      const criteria = { areas: [area, other], words: [] };
      const { matches } = await findProspects(context, companyId, () => criteria);
      if (matches.total === 0) continue;
    }
    throw excludedBy(caller, job, "has not ended and runs over prospects of this territory");
  }
}
