/** The request that begins a run: a job that assigns the prospects of a territory. */
import * as z from "zod/mini";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { Objects } from "#shared/aws/s3.ts";
import { polygonArea } from "#shared/company-index/areas.ts";
import type { Area } from "#shared/company-index/criteria.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import type { Plan } from "#shared/db/plan.ts";
import { explain } from "#shared/documentation.ts";
import { badReference } from "#shared/errors.ts";
import { type BulkServices, beginBulk, chosenIn, parsedFilter } from "#shared/jobs/bulk/create.ts";
import { jobsIn } from "#shared/jobs/bulk/queue.ts";
import { excludedBy } from "#shared/jobs/bulk/read.ts";
import { type BulkDryRun, changeFilterBody, dryRunText, type Job, options } from "#shared/jobs/bulk/schema.ts";
import type { StoredAction, StoredQueue } from "#shared/jobs/bulk/stored.ts";
import { bulkKeys } from "#shared/jobs/s3-keys.ts";
import { filterBodyTexts, filterObject } from "#shared/prospects/filter.ts";
import { findFiltered, findProspects } from "#shared/prospects/find.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";
import { packPolygon, unpackPolygon } from "#shared/reference/polygon.ts";
import { Id, named } from "#shared/schema.ts";
import { getTerritory } from "#shared/territories/territories.ts";

const { territoryId: _territoryId, assignedToUserId: _assignedToUserId, rep: _rep, ...filters } = changeFilterBody;

const RunFilter = named(
  "RunFilter",
  filterObject(filters),
  "The filters of a list, except territory and representative, which the run itself determines.",
);

export const NewRun = named(
  "NewRun",
  z
    .object({
      mode: z.enum(["assign", "unassign", "reassign"]),
      toUserId: z.optional(Id),
      fromUserId: z.optional(Id),
      filter: z.optional(RunFilter),
      ...options,
    })
    .check(
      z.refine(({ mode, toUserId }) => (mode === "unassign") === (toUserId === undefined), {
        error: "is required for `assign` and `reassign`, and not allowed for `unassign`",
        path: ["toUserId"],
      }),
      z.refine(({ mode, fromUserId }) => mode !== "assign" || fromUserId === undefined, {
        error: "is not allowed for `assign`, which takes only unassigned prospects",
        path: ["fromUserId"],
      }),
      z.refine(({ mode, fromUserId }) => mode !== "reassign" || fromUserId !== undefined, {
        error: "is required for `reassign`",
        path: ["fromUserId"],
      }),
      z.refine(({ fromUserId, toUserId }) => fromUserId === undefined || fromUserId !== toUserId, {
        error: "must be another user than toUserId",
        path: ["fromUserId"],
      }),
      z.refine(({ expectedCount, dryRun }) => expectedCount !== undefined || dryRun === true, {
        error: "is required, except for a dry run",
        path: ["expectedCount"],
      }),
    ),
  "A run over the prospects of a territory.",
);
export type NewRun = z.output<typeof NewRun>;

/* @__PURE__ */ explain([RunFilter], () => {
  const { territoryId: _id, assignedToUserId: _assignee, rep: _name, ...texts } = filterBodyTexts();
  return { fields: texts };
});
/* @__PURE__ */ explain([NewRun], () => ({
  fields: {
    mode: "`assign` gives the unassigned prospects of the territory to a user. `unassign` takes the prospects of one user, or of all users, away from them. `reassign` gives the prospects of one user to another.",
    toUserId: "The new representative. Not allowed for `unassign`.",
    fromUserId:
      "The representative whose prospects change, who may be disabled. Required for `reassign`, optional for `unassign`.",
    filter: "Further conditions on the prospects.",
    expectedCount:
      "Required, except for a dry run: the number of prospects that the client expects to change. If it is another one, the answer is 409 with the code `count_mismatch` and `actualCount`.",
    dryRun: dryRunText(),
    events: "As for a bulk change: `summary` (the default), `each` or `none`.",
  },
  example: { mode: "assign", toUserId: 139, expectedCount: 240 },
}));

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
  const area = polygonArea(polygon);
  const others = new Map<number, Area>();
  const filter = { ...parsedFilter(input.filter ?? {}), polygon };
  const assigneeIds = assigneesOf(caller, from, names);
  const chosen = chosenIn(await findFiltered(context, caller, filter, { assigneeIds }));
  const prepare = (id: number): Promise<void> =>
    services.objects.put(bulkKeys.area({ companyId, id }), packPolygon(polygon), "application/octet-stream");
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
  /** The areas of other runs, by job id. All calls of `refuseOverlap` share them, so that each is compared with a segment only once. */
  readonly others: Map<number, Area>;
}

/**
 * Throws `conflict` if an unfinished run of the company has the same territory, or if a prospect lies in the polygons of both runs. A
 * polygon counts as it was when its run was created. Filters are not compared, because a prospect may change and then match both.
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
      const other = others.get(job.id) ?? polygonArea(unpackPolygon(await objects.get(bulkKeys.area(job))));
      others.set(job.id, other);
      const criteria = { areas: [area, other], words: [] };
      const { matches } = await findProspects(context, companyId, () => criteria);
      if (matches.total === 0) continue;
    }
    throw excludedBy(caller, job, "has not ended and runs over prospects of this territory");
  }
}
