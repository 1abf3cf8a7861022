/**
 * The version of a record as devices see it. It also grows without a write of the record's own row: if a name that the record shows
 * changes, if an appointment begins, or if the user may see the record again.
 */
import type { Ahead, IndexRow } from "#shared/company-index/record.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

/** The version of the row is multiplied by this number. 2^53 / 2^24 leaves room for 536 million versions of a row. */
const LOW = 2 ** 24;

/** `low` counts changes without a write of the row, and must never decrease while the row keeps its version. */
export const shownVersion = (rowVersion: number, low = 0): number => rowVersion * LOW + Math.min(low, LOW - 1);

export const rowVersionOf = (version: number): number => Math.floor(version / LOW);

/** A deleted tag counts more than any number of renames, because this number is deleted with the tag and `low` must not decrease. */
const DELETED_TAG = 2 ** 18;

/**
 * Returns functions for the parts of a prospect's `low`. Their sum never decreases while the row keeps its version: statuses and users are
 * never deleted, and the users of appointments that have begun still count.
 */
export function lowsOf({ statuses, tags, users }: Dictionary, nowMs: number) {
  const renamesIn = (
    named: ReadonlyMap<number, { readonly renames?: number | undefined }>,
    id: number | null,
  ): number => (id === null ? undefined : named.get(id)?.renames) ?? 0;
  const ofUser = (id: number | null): number => renamesIn(users, id);
  const ofTag = (id: number): number => (tags.has(id) ? Math.min(renamesIn(tags, id), DELETED_TAG - 1) : DELETED_TAG);
  const hasBegun = (startMs: number): number => (startMs < nowMs ? 1 : 0);
  return {
    ofStatus: (id: number | null): number => renamesIn(statuses, id),
    ofUser,
    ofTags: (ids: readonly number[]): number => ids.reduce((sum, id) => sum + ofTag(id), 0),
    ofAhead: (ahead: readonly Ahead[]): number =>
      ahead.reduce((sum, [start, by, to]) => sum + hasBegun(start) + ofUser(by) + ofUser(to), 0),
  };
}

type Shown = Pick<IndexRow, "statusId" | "assignedToUserId" | "tagIds" | "ahead">;

export const prospectLow = (
  { statusId, assignedToUserId, tagIds, ahead }: Shown,
  { ofStatus, ofUser, ofTags, ofAhead }: ReturnType<typeof lowsOf>,
): number => ofStatus(statusId) + ofUser(assignedToUserId) + ofTags(tagIds) + ofAhead(ahead);
