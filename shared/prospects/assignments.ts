/**
 * The past assignments of a prospect. A device that was offline may send a status change, note or appointment (a fact) after the prospect
 * was assigned to another user. The service accepts the fact if the prospect was assigned to the sender at the time of the fact.
 */
import type { Caller } from "#shared/auth/caller.ts";
import * as limits from "#shared/limits.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

type Assignments = Pick<StoredProspect, "assignedToUserId" | "assignedAt" | "pastAssignments" | "createdAt">;

/**
 * Returns the assignment fields of a prospect whose assignee changes at `nowMs`. A past assignment is removed if it ended before the oldest
 * fact that the service accepts, or if there are more than `limits.pastAssignments` newer ones.
 */
export function reassignedAt(
  before: Assignments,
  nowMs: number,
): Required<Pick<StoredProspect, "assignedAt" | "pastAssignments">> {
  const { assignedToUserId: userId, assignedAt = before.createdAt, pastAssignments = [] } = before;
  const ended = userId === null ? [] : [[userId, Date.parse(assignedAt), nowMs] as const];
  const recent = [...pastAssignments, ...ended].filter(([, , until]) => until >= nowMs - limits.factAgeMs);
  return {
    assignedAt: new Date(nowMs).toISOString(),
    pastAssignments: recent.slice(-limits.pastAssignments).map(([user, from, until]) => [user, from, until]),
  };
}

/**
 * Returns true if the prospect was assigned to the caller at `occurredAt`, according to its past assignments. The current assignment is not
 * considered.
 */
export function wasAssigned({ userId }: Caller, { pastAssignments = [] }: Assignments, occurredAt: string): boolean {
  const at = Date.parse(occurredAt);
  return pastAssignments.some(([user, from, until]) => user === userId && from <= at && at <= until);
}
