/** The schemas of the API for bulk jobs: requests and responses. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { explain, pageSizeText, pageTexts } from "#shared/documentation.ts";
import { BulkKind, BulkState, handledCounts } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { FilterText, filterBodyTexts, filterObject, filterTextsOf, SearchText } from "#shared/prospects/filter.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { BulkEvents } from "#shared/prospects/stored.ts";
import { cursorPage, Id, named, PageSize, Timestamp } from "#shared/schema.ts";

export const Job = named(
  "Job",
  z.object({
    id: Id,
    kind: BulkKind,
    state: BulkState,
    total: z.int(),
    ...handledCounts,
    unprocessed: z.int(),
    events: BulkEvents,
    territoryId: z.nullable(Id),
    undoes: z.nullable(Id),
    undoneBy: z.nullable(Id),
    failure: z.nullable(z.string()),
    createdBy: z.nullable(UserSummary),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    undoableUntil: z.nullable(Timestamp),
  }),
  "A job that changes many records. The five counts always sum to `total`.",
);
export type Job = z.infer<typeof Job>;

/* @__PURE__ */ explain([Job], () => ({
  fields: {
    kind: "What the job does: a bulk change of prospects, a run over a territory, the undo of a job, or the undo of an import.",
    state:
      "A company's jobs run one after the other. A job that is `paused` runs on after a resume. `completed`, `cancelled` and `failed` are ends.",
    total: "The number of records of the job. The records are chosen when the job is created.",
    changed: "The number of records that the job has changed.",
    unchanged: "The number of records that were already as the job wanted them.",
    skipped: "The number of records that the job left as they are, for example because they were deleted meanwhile.",
    failed: "The number of records that could not be changed.",
    unprocessed: "The number of records that the job has not handled.",
    events: "How webhooks learn of the changes.",
    territoryId: "The territory of a run; null for other jobs.",
    undoes: "The id of the job or import that this job undoes.",
    undoneBy: "The id of the newest job that undoes this one.",
    failure: "Why the job failed, in words; null unless it failed.",
    createdBy: "The user who created the job. The job has the rights that this user has at each write.",
    undoableUntil: "Until when the job can be undone; null if it cannot be undone or has not ended.",
  },
}));

export const JobPage = cursorPage("JobPage", Job, "Jobs, newest first.");
export type JobPage = z.infer<typeof JobPage>;

/* @__PURE__ */ explain([JobPage], () => pageTexts());

export const JobQuery = z.object({
  cursor: z.optional(z.string().check(z.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z#\d{16}$/, "must be a cursor"))),
  limit: z._default(PageSize, limits.pageSizeDefault),
});
export type JobQuery = z.infer<typeof JobQuery>;

/* @__PURE__ */ explain([JobQuery], () => ({
  fields: {
    cursor: {
      description: "`nextCursor` of the previous page.",
      example: "2026-06-01T15:04:05.678Z#0000000000001033",
    },
    limit: pageSizeText(),
  },
}));

/** Refuses a text that has only blanks, commas and quotes, because it is a list of empty entries. */
const hasValue = z.refine<string>((text) => /[^\s,"]/.test(text), { error: "must have a value" });

/** A filter without a value is refused: if it were ignored, as in a list, the job would change all prospects. */
export const changeFilterBody = {
  ...filterTextsOf(z.optional(FilterText.check(hasValue))),
  search: z.optional(SearchText.check(hasValue)),
};

const BulkFilter = named(
  "BulkFilter",
  filterObject({ ...changeFilterBody, all: z.optional(z.literal(true)) }).check(
    z.refine((filter) => Object.values(filter).some((value) => value !== undefined), {
      error: "must have at least one filter, or `all: true`",
    }),
    z.refine((filter) => filter.all === undefined || Object.keys(filter).length === 1, {
      error: "must not be sent together with other filters",
      path: ["all"],
    }),
  ),
  "The filters of a list, or all prospects.",
);
export type BulkFilter = z.infer<typeof BulkFilter>;

const TagIds = z.optional(z.array(Id).check(z.minLength(1), z.maxLength(limits.tagsPerProspect)));

const BulkSet = named(
  "BulkSet",
  z
    .object({ currentStatusId: z.optional(z.nullable(Id)), assignedToUserId: z.optional(z.nullable(Id)) })
    .check(
      z.refine(
        ({ currentStatusId, assignedToUserId }) => currentStatusId !== undefined || assignedToUserId !== undefined,
        { error: "must have currentStatusId or assignedToUserId" },
      ),
    ),
  "The new values of fields.",
);

const BulkAction = named(
  "BulkAction",
  z
    .object({
      set: z.optional(BulkSet),
      addTagIds: TagIds,
      removeTagIds: TagIds,
      delete: z.optional(z.literal(true)),
    })
    .check(
      z.refine(
        ({ set, addTagIds, removeTagIds, delete: deletes }) =>
          ((set ?? addTagIds ?? removeTagIds) === undefined) === (deletes === true),
        { error: "must have either `delete: true`, or at least one of set, addTagIds and removeTagIds" },
      ),
      z.refine(({ addTagIds = [], removeTagIds = [] }) => !addTagIds.some((id) => removeTagIds.includes(id)), {
        error: "must not have a tag that is also in addTagIds",
        path: ["removeTagIds"],
      }),
    ),
  "What changes in each of the prospects.",
);
export type BulkAction = z.infer<typeof BulkAction>;

/** The fields of every request that begins a job for chosen prospects. */
export const options = {
  expectedCount: z.optional(z.int().check(z.minimum(0))),
  dryRun: z.optional(z.boolean()),
  events: z.optional(BulkEvents),
};
export const dryRunText = (): string =>
  `If true, nothing changes. The answer has the number of prospects and ${limits.bulkSamples} of them.`;

export const NewBulk = named(
  "NewBulk",
  z
    .object({
      ids: z.optional(z.array(Id).check(z.minLength(1), z.maxLength(limits.bulkIds))),
      filter: z.optional(BulkFilter),
      action: BulkAction,
      ...options,
    })
    .check(
      z.refine(({ ids, filter }) => (ids === undefined) !== (filter === undefined), {
        error: "must have either ids or filter",
        path: ["filter"],
      }),
      z.refine(({ filter, expectedCount, dryRun }) => !(filter && expectedCount === undefined && dryRun !== true), {
        error: "is required with a filter",
        path: ["expectedCount"],
      }),
    ),
  "A change of many prospects: which ones, and what changes.",
);
export type NewBulk = z.infer<typeof NewBulk>;

/* @__PURE__ */ explain([BulkFilter], () => ({
  fields: {
    ...filterBodyTexts(),
    all: "Chooses all prospects that the caller may see. Must not be sent together with other filters.",
  },
}));
/* @__PURE__ */ explain([BulkAction], () => ({
  fields: {
    set: "The new status and assignee. Null clears a field.",
    addTagIds: "Tags that each prospect gets in addition.",
    removeTagIds: "Tags that each prospect loses.",
    delete: "Deletes the prospects. For admins and owners.",
  },
}));
/* @__PURE__ */ explain([NewBulk], () => ({
  fields: {
    ids: `Ids of prospects, at most ${limits.bulkIds}.`,
    filter: "The filters of the list, as texts: at least one, or `all: true`.",
    expectedCount:
      "The number of prospects that the client expects to change. If it is another one, the answer is 409 with the code `count_mismatch` and `actualCount`. Required with a filter, except for a dry run.",
    dryRun: dryRunText(),
    events:
      "`summary` (the default): webhooks get one event for the whole job. `each`: they also get the events of each change. `none`: they get none.",
  },
  example: { filter: { status: "New" }, action: { set: { assignedToUserId: 139 } }, expectedCount: 240 },
}));

export const NewUndo = named("NewUndo", z.object({ events: z.optional(BulkEvents) }), "The undo of a job.");
export type NewUndo = z.infer<typeof NewUndo>;

/* @__PURE__ */ explain([NewUndo], () => ({
  fields: { events: "How webhooks learn of the changes: `summary` (the default), `each` or `none`." },
  example: { events: "summary" },
}));

export const BulkDryRun = named(
  "BulkDryRun",
  z.object({ count: z.int(), samples: z.array(Prospect) }),
  "What a bulk change would change.",
);
export type BulkDryRun = z.infer<typeof BulkDryRun>;

/* @__PURE__ */ explain([BulkDryRun], () => ({
  fields: {
    count: "The number of prospects, or of different ids in the request.",
    samples: `At most ${limits.bulkSamples} of the prospects, as they are now.`,
  },
}));
