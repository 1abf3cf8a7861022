/** The kind of bulk jobs that assigns the prospects of a territory. */
import { changeKind } from "#shared/jobs/bulk/change.ts";
import type { Kind } from "#shared/jobs/bulk/kind.ts";
import type { StoredAction } from "#shared/jobs/bulk/stored.ts";

/** A prospect with another assignee was reassigned after the job was created. */
export const territoryRunKind: Kind = {
  ...changeKind,
  decide: (job, candidate) => {
    const { deletedAt, assignedToUserId } = candidate.current;
    if (deletedAt === undefined && !isFrom(job.action?.from, assignedToUserId)) return { skipped: "changed_since" };
    return changeKind.decide(job, candidate);
  },
};

function isFrom(from: StoredAction["from"], assignee: number | null): boolean {
  if (from === "anyone") return assignee !== null;
  return from === "nobody" ? assignee === null : assignee === from;
}
