/** Counts the prospects inside a territory by status and by representative, from the company index. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { DAY_MS } from "#shared/clock.ts";
import { valueAt } from "#shared/company-index/encoding.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { explain } from "#shared/documentation.ts";
import { notFound } from "#shared/errors.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { statusSummary } from "#shared/prospects/present.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { userSummary } from "#shared/reference/users.ts";
import { named } from "#shared/schema.ts";

const StatusCount = named(
  "StatusCount",
  z.object({ status: z.nullable(StatusSummary), count: z.int() }),
  "The number of prospects with a status; null means no status.",
);
const AssigneeCount = named(
  "AssigneeCount",
  z.object({ user: z.nullable(UserSummary), count: z.int() }),
  "The number of prospects of a representative; null means unassigned.",
);

export const TerritoryStats = named(
  "TerritoryStats",
  z.object({
    total: z.int(),
    byStatus: z.array(StatusCount),
    byAssignee: z.array(AssigneeCount),
    untouchedDays: z.nullable(z.int()),
  }),
  "The prospects inside a territory that the caller may see.",
);
export type TerritoryStats = z.infer<typeof TerritoryStats>;

/* @__PURE__ */ explain([TerritoryStats], () => ({
  fields: {
    total: "The number of prospects inside the polygon or on its boundary.",
    byStatus: "Only statuses with prospects, the largest count first. The counts sum to `total`.",
    byAssignee: "Only representatives with prospects, the largest count first. The counts sum to `total`.",
    untouchedDays:
      "Whole days of 24 hours since the last change of the prospect that has been unchanged for the longest time. The changes are those of the filter `updatedSince`, so notes and appointments do not count. Null if there are no prospects.",
  },
}));

export async function territoryStats(context: ReadContext, caller: Caller, id: number): Promise<TerritoryStats> {
  const [locator, { names, matches }] = await Promise.all([
    context.table.get(keys.territoryLocator(caller.companyId, id)),
    findFiltered(context, caller, { territoryId: id }),
  ]);
  if (locator === undefined) throw notFound("territory");
  const statuses: Counts = new Map();
  const assignees: Counts = new Map();
  for (const { inView, rows } of matches.segments) {
    const { statusId, assignedToUserId } = inView.segment.main;
    for (const row of rows) {
      count(statuses, valueAt(statusId, row));
      count(assignees, valueAt(assignedToUserId, row));
    }
  }
  for (const { statusId, assignedToUserId } of matches.unflushed) {
    count(statuses, statusId);
    count(assignees, assignedToUserId);
  }
  return {
    total: matches.total,
    byStatus: largestFirst(statuses).map(([id, count]) => ({
      status: id === null ? null : statusSummary(names.statuses.get(id)),
      count,
    })),
    untouchedDays: untouchedDays(matches, context.clock.now()),
    byAssignee: largestFirst(assignees).map(([id, count]) => ({
      user: id === null ? null : userSummary(names.users.get(id)),
      count,
    })),
  };
}

/** The numbers of prospects by the id of their status or assignee. */
type Counts = Map<number | null, number>;

const count = (counts: Counts, id: number | null) => counts.set(id, (counts.get(id) ?? 0) + 1);

const largestFirst = (counts: Counts) => [...counts].sort(([a, one], [b, other]) => other - one || (a ?? 0) - (b ?? 0));

export function untouchedDays({ segments, unflushed, total }: Matches, now: number): number | null {
  let oldest = Number.POSITIVE_INFINITY;
  for (const { inView, rows } of segments) {
    for (const row of rows) oldest = Math.min(oldest, inView.segment.updatedAt(row));
  }
  for (const { updatedAt } of unflushed) oldest = Math.min(oldest, updatedAt);
  return total === 0 ? null : Math.max(0, Math.floor((now - oldest) / DAY_MS));
}
