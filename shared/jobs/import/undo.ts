/**
 * Undoes an import as a bulk job. The job hides each prospect that the import has created, unless somebody has changed the prospect since.
 */
import { may } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { all, missing } from "#shared/db/expression.ts";
import type { Candidate, Decision, Kind } from "#shared/jobs/bulk/kind.ts";
import { consecutiveIds } from "#shared/jobs/bulk/members.ts";
import type { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { notesAttributes } from "#shared/prospects/stored.ts";

export const importUndoKind: Kind = {
  allows: (caller) => may(caller, "canManageProspects"),
  members:
    (_, { firstId = 0, total }) =>
    async (chunk) =>
      consecutiveIds(firstId, total, chunk).map((id) => ({ id })),
  decide,
};

/** The condition that no note of the prospect was added, changed or deleted since the import wrote the prospect's row. */
const hasSameNotes = all(...notesAttributes.map(missing));

function decide({ undoes }: StoredBulk, { current, item, nowMs }: Candidate): Decision {
  if (current.deletedAt !== undefined || current.importId !== String(undoes)) return { skipped: "not_found" };
  // Each change of the prospect or of its appointments raises the version. A change of a note does not, but it sets attributes of the row.
  const isUnchanged = current.version === 1 && notesAttributes.every((name) => item[name] === undefined);
  return isUnchanged ? { fields: { deletedAt: iso(nowMs) }, deletedIf: hasSameNotes } : { skipped: "changed_since" };
}
