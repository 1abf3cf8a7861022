/** The visibility rule, applied to a stored prospect and to the writes of what hangs on it. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { all, type Condition, equals, missing, present } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

/** Is there such a prospect for the caller? Another company's rows are never read in the first place. */
export function isVisible(
  caller: Caller,
  { deletedAt, assignedToUserId }: Pick<StoredProspect, "deletedAt" | "assignedToUserId">,
): boolean {
  const assignee = visibleAssignee(caller);
  return deletedAt === undefined && (assignee === undefined || assignedToUserId === assignee);
}

/** Holds for a prospect's row as long as `isVisible` does. */
export function visibleCondition(caller: Caller): Condition {
  const assignee = visibleAssignee(caller);
  const own = assignee === undefined ? [] : [equals("assignedToUserId", assignee)];
  return all(present, missing("deletedAt"), ...own);
}

/**
 * The transaction goes through only while the caller sees the prospect. An update that takes away what is not there
 * changes nothing, leaves no stream record and costs what a ConditionCheck costs; dynoxide 1.2.1 refuses a ConditionCheck
 * that compares with a value. `importId` names the import that it came with, once that is known to be completed.
 */
export const requireVisible = (caller: Caller, prospectId: number, importId?: string | undefined): Write => ({
  update: keys.prospect(caller.companyId, prospectId),
  change: { remove: ["nothing"] },
  when: all(visibleCondition(caller), importId === undefined ? missing("importId") : equals("importId", importId)),
});
