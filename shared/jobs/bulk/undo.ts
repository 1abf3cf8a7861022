/** The kind of bulk jobs that undoes another bulk job. It restores the fields that nobody has changed since that job. */
import { isAdmin, may } from "#shared/auth/caller.ts";
import type { Kind } from "#shared/jobs/bulk/kind.ts";
import { readResults } from "#shared/jobs/bulk/results.ts";
import { commonFields, equalling, isEmpty } from "#shared/prospects/bulk-write.ts";

export const undoKind: Kind = {
  allows: (caller, { action }) => (action?.delete === true ? isAdmin(caller) : may(caller, "canManageProspects")),
  members: ({ objects }, { companyId, undoes = 0 }) => {
    return async (chunk) => {
      const results = await readResults(objects, { companyId, id: undoes }, chunk);
      return results.filter(({ outcome }) => outcome === "changed");
    };
  },
  decide: (_job, { current, member: { before = {}, after = {} } }) => {
    // If a user has deleted the prospect after the job changed it, the prospect stays deleted. Only the undo of a deletion restores a
    // deleted prospect.
    if (current.deletedAt !== undefined && after.deletedAt === undefined) return { skipped: "not_found" };
    const { assignedByUserId: _assigner, ...compared } = after;
    const left = equalling(current, compared);
    if (isEmpty(left)) return { skipped: "changed_since" };
    const { assignedByUserId } = before;
    const restoresAssigner = left.assignedToUserId !== undefined && assignedByUserId !== undefined;
    return { fields: { ...commonFields(before, left), ...(restoresAssigner && { assignedByUserId }) } };
  },
};
