/** Converts bulk jobs to the form that the API returns. */
import { iso } from "#shared/clock.ts";
import type { Job } from "#shared/jobs/bulk/schema.ts";
import type { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { userSummary } from "#shared/reference/users.ts";

/** `isUndone` must be true if another job undoes this one or has undone it. */
export function presentJob(stored: StoredBulk, { users }: Pick<Dictionary, "users">, isUndone = false): Job {
  const { id, kind, state, total, changed, unchanged, skipped, failed, events, createdAt, updatedAt } = stored;
  const until = isUndone ? undefined : undoableUntilMs(stored);
  return {
    id,
    kind,
    state,
    total,
    changed,
    unchanged,
    skipped,
    failed,
    unprocessed: total - changed - unchanged - skipped - failed,
    events,
    territoryId: stored.territoryId ?? null,
    undoes: stored.undoes ?? null,
    undoneBy: stored.undoneBy ?? null,
    failure: stored.failure ?? null,
    createdBy: userSummary(users.get(stored.createdBy)),
    createdAt,
    updatedAt,
    undoableUntil: until === undefined ? null : iso(until),
  };
}

/**
 * Returns the time until which a job can be undone, unless it is undone already. Returns undefined if the job has not ended or is an undo.
 */
export const undoableUntilMs = ({ kind, endedAt }: StoredBulk): number | undefined =>
  kind === "undo" || kind === "import_undo" || endedAt === undefined
    ? undefined
    : Date.parse(endedAt) + limits.bulkKeptMs;
