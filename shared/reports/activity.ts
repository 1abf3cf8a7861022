/** Counts what users have done in a time range: status changes, notes, appointments and new prospects. */
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { DAY_MS, iso } from "#shared/clock.ts";
import { ActivityUnreadable } from "#shared/company-index/activity/log.ts";
import { type Counting, countActivity, type TimeRange } from "#shared/company-index/activity/read.ts";
import { Sums } from "#shared/company-index/activity/sums.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { type Fact, type FactKind, factKinds, visitImported } from "#shared/company-index/facts.ts";
import type { ReadContext } from "#shared/context.ts";
import { explain } from "#shared/documentation.ts";
import { ApiError, invalid } from "#shared/errors.ts";
import { instantOf, isDay } from "#shared/instant.ts";
import * as limits from "#shared/limits.ts";
import { TimeParameter } from "#shared/prospects/filter.ts";
import { statusSummary } from "#shared/prospects/present.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { userSummary } from "#shared/reference/users.ts";
import { DaysOfZone, TimeZone } from "#shared/reports/days.ts";
import { byTerritory, TerritorySummary } from "#shared/reports/territories.ts";
import { named, Timestamp } from "#shared/schema.ts";

const Grouping = z.enum(["user", "status", "day", "territory"]);

export const ActivityQuery = z.object({
  from: TimeParameter,
  to: TimeParameter,
  groupBy: Grouping,
  timezone: z._default(TimeZone, "UTC"),
});
export type ActivityQuery = z.output<typeof ActivityQuery>;

const Count = z.int().check(z.minimum(0));
const counts = { statusChanges: Count, notes: Count, appointments: Count, creations: Count };

export const ActivityCounts = named(
  "ActivityCounts",
  z.object(counts),
  "How often something was done in the time range.",
);
type ActivityCounts = z.infer<typeof ActivityCounts>;

export const ActivityGroup = named(
  "ActivityGroup",
  z.object({
    user: z.optional(z.nullable(UserSummary)),
    status: z.optional(z.nullable(StatusSummary)),
    day: z.optional(z.string()),
    territory: z.optional(z.nullable(TerritorySummary)),
    ...counts,
  }),
  "The counts of one user, status, day or territory.",
);
export type ActivityGroup = z.infer<typeof ActivityGroup>;

export const ActivityReport = named(
  "ActivityReport",
  z.object({
    from: Timestamp,
    to: Timestamp,
    groupBy: Grouping,
    timezone: z.string(),
    countedSince: z.nullable(Timestamp),
    totals: ActivityCounts,
    items: z.array(ActivityGroup),
  }),
  "Exact counts of what users have done in a time range.",
);
export type ActivityReport = z.infer<typeof ActivityReport>;

/* @__PURE__ */ explain([ActivityQuery], () => ({
  fields: {
    from: {
      description:
        "The first instant: an ISO 8601 time, or a date for the beginning of that day in `timezone`. A time without an offset is UTC.",
      example: "2026-06-01",
    },
    to: {
      description: `The last instant: an ISO 8601 time, or a date for the end of that day in \`timezone\`. At most ${limits.activityDays} days after \`from\`.`,
      example: "2026-06-07",
    },
    groupBy: {
      description:
        "`status`: a status change belongs to its new status, and a new prospect to its first status; notes and appointments belong to no status. `territory`: by the territories in which the prospects are now.",
      example: "user",
    },
    timezone: { description: "The time zone of days, by its IANA name. Default: UTC.", example: "America/Denver" },
  },
}));
/* @__PURE__ */ explain([ActivityCounts, ActivityGroup], () => ({
  fields: {
    statusChanges: "Entries of the status history. A new prospect with a status has one.",
    notes: "New notes, also those that were deleted later.",
    appointments: "New appointments, also those that were cancelled or deleted later.",
    creations: "New prospects, also those that were deleted later.",
  },
}));
/* @__PURE__ */ explain([ActivityGroup], () => ({
  fields: {
    user: "Only with `groupBy=user`. The user who did it.",
    status: "Only with `groupBy=status`. Null for no status.",
    day: "Only with `groupBy=day`. `YYYY-MM-DD` in `timezone`.",
    territory:
      "Only with `groupBy=territory`. Null for prospects that are in no territory, are deleted, or that the caller may not see now.",
  },
}));
/* @__PURE__ */ explain([ActivityReport], () => ({
  fields: {
    countedSince: "Earlier activity is not or only partly counted. Null if all activity of the company is counted.",
    totals: "The counts of the whole time range. If territories overlap, their counts have a larger sum.",
    items: "Only groups with any activity: days in order, all others by id, null last.",
  },
}));

/** One count for each kind of activity, in the order of `factKinds`. */
export type KindCounts = readonly number[];

/** For a user who sees only assigned prospects, counts only what this user has done. */
export async function activityReport(
  context: ReadContext,
  caller: Caller,
  query: ActivityQuery,
): Promise<ActivityReport> {
  const { companyId } = caller;
  const { groupBy, timezone } = query;
  const days = new DaysOfZone(timezone);
  const range = rangeOf(query, days);
  const isEmpty = range.from > range.to;
  const [dictionary, { counting, since }] = await Promise.all([
    currentDictionary(context, companyId),
    countActivity(context.table, companyId, isEmpty ? NO_TIME : range, {
      sumsSuffice: groupBy === "user" || groupBy === "status" || (groupBy === "day" && days.isUtc),
      nowMs: context.clock.now(),
      newCounting: () => new Groups(groupBy, days, visibleAssignee(caller)),
    }).catch((error: unknown) => {
      throw error instanceof ActivityUnreadable || error instanceof IndexUnreadable ? unreadable(error) : error;
    }),
  ]);
  const { totals, counts } = isEmpty ? new Groups(groupBy, days, undefined) : counting;
  return {
    from: iso(range.from),
    to: iso(range.to),
    groupBy,
    timezone,
    countedSince: since === null ? null : iso(since),
    totals: shown(totals),
    items: await itemsOf(context, caller, groupBy, counts, dictionary),
  };
}

/** The error if a row cannot be read, because a report without this row would look complete. */
const unreadable = (cause: unknown): ApiError =>
  new ApiError("unavailable", "The activity of the company cannot be read.", { cause });

/** The range that is read if the requested range is empty: a single instant, which costs nearly nothing. */
const NO_TIME: TimeRange = { from: 0, to: 0 };
const FIRST_TIME = Date.parse("0000-01-01T00:00:00.000Z");
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");

function rangeOf({ from: first, to: last }: ActivityQuery, days: DaysOfZone): TimeRange {
  const from = isDay(first) ? days.startOf(first) : instantOf(first);
  const to = isDay(last) ? days.endOf(last) : instantOf(last);
  for (const [parameter, ms] of Object.entries({ from, to })) {
    if (ms >= FIRST_TIME && ms <= LAST_TIME) continue;
    const message = "must lie in the years 0000 to 9999";
    throw invalid("The report covers an impossible time.", { parameter, code: "out_of_range", message });
  }
  // One hour more, because the day on which summer time ends has 25 hours.
  if (to - from > limits.activityDays * DAY_MS + 3_600_000) {
    const message = `must be at most ${limits.activityDays} days after from`;
    throw invalid("The report covers too many days.", { parameter: "to", code: "invalid_range", message });
  }
  return { from, to };
}

type Key = string | number | null;

/**
 * The counts of a report by group. The key of a group is a day, or the id of a user, status or prospect. A report by territory first counts
 * the facts of each prospect. `byTerritory` then adds up the counts of the prospects in each territory.
 */
class Groups implements Counting {
  readonly #groupBy: ActivityQuery["groupBy"];
  readonly #days: DaysOfZone;
  readonly #userId: number | undefined;
  readonly counts = new Map<Key, number[]>();
  readonly totals = factKinds.map(() => 0);

  constructor(groupBy: ActivityQuery["groupBy"], days: DaysOfZone, userId: number | undefined) {
    this.#groupBy = groupBy;
    this.#days = days;
    this.#userId = userId;
  }

  readonly cell: Counting["cell"] = ({ userId, statusId, counts }, day) => {
    const key = this.#groupBy === "user" ? userId : this.#groupBy === "status" ? statusId : day;
    for (const [kind, count] of counts.entries()) this.#add(userId, key, kind, count);
  };

  readonly fact: Counting["fact"] = (fact) => {
    this.#add(fact.userId, this.#keyOf(fact), factKinds.indexOf(fact.kind), 1);
  };

  readonly imported: Counting["imported"] = (imported) => {
    const { userId, at } = imported;
    if (this.#groupBy === "territory") {
      visitImported(imported, (kind, id) => this.#add(userId, id, factKinds.indexOf(kind), 1));
      return;
    }
    const sums = new Sums();
    sums.addImported(imported);
    const day = this.#days.dayOf(at);
    for (const cell of sums) this.cell(cell, day);
  };

  #keyOf({ userId, statusId, at, prospectId }: Fact): Key {
    switch (this.#groupBy) {
      case "user":
        return userId;
      case "status":
        return statusId;
      case "day":
        return this.#days.dayOf(at);
      case "territory":
        return prospectId;
    }
  }

  #add(userId: number, key: Key, kind: number, count: number): void {
    if (count === 0 || (this.#userId !== undefined && userId !== this.#userId)) return;
    const counts = this.counts.get(key) ?? factKinds.map(() => 0);
    this.counts.set(key, counts);
    counts[kind] = at(counts, kind) + count;
    this.totals[kind] = at(this.totals, kind) + count;
  }
}

const shown = (counts: KindCounts): ActivityCounts => {
  const of = (kind: FactKind): number => at(counts, factKinds.indexOf(kind));
  return {
    statusChanges: of("statusChange"),
    notes: of("note"),
    appointments: of("appointment"),
    creations: of("creation"),
  };
};

async function itemsOf(
  context: ReadContext,
  caller: Caller,
  groupBy: ActivityQuery["groupBy"],
  counts: ReadonlyMap<Key, KindCounts>,
  { users, statuses }: Dictionary,
): Promise<ActivityGroup[]> {
  if (groupBy === "territory") {
    const byProspect = new Map(
      [...counts].flatMap(([id, own]) => (typeof id === "number" ? [[id, own] as const] : [])),
    );
    const found = await byTerritory(context, caller, byProspect);
    return found.map(({ territory, counts: own }) => ({ territory, ...shown(own) }));
  }
  return [...counts].toSorted(inOrder).map(([key, own]) => {
    if (typeof key === "string") return { day: key, ...shown(own) };
    if (groupBy === "user") return { user: userSummary(key === null ? undefined : users.get(key)), ...shown(own) };
    return { status: statusSummary(key === null ? undefined : statuses.get(key)), ...shown(own) };
  });
}

/** Null comes last. */
function inOrder([a]: readonly [Key, unknown], [b]: readonly [Key, unknown]): number {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : 1;
  return (Number(a) || Number.POSITIVE_INFINITY) - (Number(b) || Number.POSITIVE_INFINITY);
}
