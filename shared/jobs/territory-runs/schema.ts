/** The schema of the request that begins a run: a job that assigns the prospects of a territory. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { changeFilterBody } from "#shared/jobs/bulk/schema.ts";
import * as limits from "#shared/limits.ts";
import { filterBodyTexts, filterObject } from "#shared/prospects/filter.ts";
import { BulkEvents } from "#shared/prospects/stored.ts";
import { Id, named } from "#shared/schema.ts";

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
      expectedCount: z.optional(z.int().check(z.minimum(0))),
      dryRun: z.optional(z.boolean()),
      events: z.optional(BulkEvents),
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
    dryRun: `If true, nothing changes. The answer has the number of prospects and ${limits.bulkSamples} of them.`,
    events: "As for a bulk change: `summary` (the default), `each` or `none`.",
  },
  example: { mode: "assign", toUserId: 139, expectedCount: 240 },
}));
