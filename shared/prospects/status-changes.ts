/** The entries of a prospect's status history. The last change is in the prospect's row, each earlier one in a separate row. */
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Write } from "#shared/db/expression.ts";
import { absent } from "#shared/db/expression.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { type Arrival, occurred } from "#shared/prospects/arrival.ts";
import { statusSummary } from "#shared/prospects/present.ts";
import { pastFact, replaceProspect } from "#shared/prospects/rows.ts";
import type { LastStatusChange, StoredProspect, StoredStatusChange } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

interface Origin extends Pick<Arrival, "occurredAt"> {
  readonly source: string;
}

/** Returns the history entry for the change from `previousStatusId` to the present status of this prospect. */
export function statusChange(
  id: number,
  { statusId, updatedBy, updatedAt, version }: StoredProspect,
  previousStatusId: number | null,
  dictionary: Dictionary,
  { source, ...arrival }: Origin,
): LastStatusChange {
  const summary = (of: number | null) => (of === null ? null : statusSummary(dictionary.statuses.get(of)));
  return {
    id,
    status: summary(statusId),
    previousStatus: summary(previousStatusId),
    changedBy: updatedBy,
    source,
    createdAt: updatedAt,
    ...occurred(arrival),
    version,
  };
}

export function historyWrite({ companyId, id: prospectId }: StoredProspect, change: LastStatusChange): Write {
  const row: StoredStatusChange = { ...change, type: "history", prospectId };
  return { put: { ...attachedKeys.history(companyId, prospectId, change.version), ...row }, when: absent };
}

/** Throws `conflict` if the history is full. */
export function entriesBeforeNext({ pastStatusChanges = 0, lastStatusChange }: StoredProspect): number {
  const entries = pastStatusChanges + (lastStatusChange === null ? 0 : 1);
  if (entries < limits.statusChangesPerProspect) return entries;
  throw new ApiError("conflict", `The status of a prospect may change ${limits.statusChangesPerProspect} times.`);
}

/**
 * Adds a status change that the user made while the prospect was still assigned to this user. Throws `conflict` if the history is full. The
 * present status stays, and the previous one is null, because it is not known.
 */
export async function pastStatusChange(
  { ids, clock }: Pick<ApiContext, "ids" | "clock">,
  userId: number,
  current: StoredProspect,
  statusId: number | null,
  dictionary: Dictionary,
  origin: Origin,
): Promise<{ next: StoredProspect; writes: Write[] }> {
  entriesBeforeNext(current);
  const moved = { updatedAt: iso(clock.now()), version: current.version + 1 };
  const next = { ...current, ...moved, pastStatusChanges: (current.pastStatusChanges ?? 0) + 1 };
  const fact = { ...next, statusId, updatedBy: userId };
  const entry = statusChange(await ids.next(), fact, null, dictionary, origin);
  return {
    next,
    writes: [...replaceProspect(current, next, undefined, { fact: pastFact(entry) }), historyWrite(next, entry)],
  };
}
