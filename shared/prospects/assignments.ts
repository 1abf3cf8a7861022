/**
 * The past assignments of a prospect. A device that was offline may send a fact after the prospect was assigned to another user. The
 * service accepts the fact if the prospect was assigned to the sender at the time of the fact.
 */
import type { Caller } from "#shared/auth/caller.ts";
import * as limits from "#shared/limits.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

type Stored = Pick<StoredProspect, "pastAssignments">;
type Assignments = Pick<StoredProspect, "assignedToUserId" | "assignedAt" | "createdAt"> & Stored;

/** The id for a time in which the prospect had no assignee. */
const NOBODY = 0;
/** The id for assignees that the row does not name any more, because the prospect had too many assignments. */
const FORGOTTEN = -1;

/** The times are in milliseconds since 1970. */
interface Past {
  readonly user: number;
  readonly from: number;
  readonly until: number;
}

/**
 * Returns the assignment fields after a change of the assignee. Drops past assignments that ended before the oldest fact that the service
 * accepts. If more than `limits.pastAssignments` remain, the shortest ones lose their user ids, but not the newest ones.
 */
export function reassignedAt(
  before: Assignments,
  nowMs: number,
): Required<Pick<Assignments, "assignedAt" | keyof Stored>> {
  const { assignedToUserId: user, assignedAt = before.createdAt } = before;
  const from = Date.parse(assignedAt);
  // The clock of the function that wrote `assignedAt` may have been fast, so `nowMs` may lie before `from`.
  const until = Math.max(nowMs, from);
  const all = [...pastOf(before), ...(user === null ? [] : [{ user, from, until }])];
  const past = all.filter((one) => one.until >= until - limits.pastAssignmentsMs);
  const newest = past.filter(isKnown).slice(-limits.newestAssignments);
  const earlier = past.slice(0, past.length - newest.length);
  return { assignedAt: new Date(until).toISOString(), pastAssignments: packed([...limited(earlier), ...newest]) };
}

const isKnown = ({ user }: Past): boolean => user !== FORGOTTEN;

/** Removes the shortest assignments. A `FORGOTTEN` entry means that assignments before its end are missing. */
function limited(past: readonly Past[]): readonly Past[] {
  const known = past.filter(isKnown);
  if (known.length <= limits.pastAssignments - limits.newestAssignments) return past;
  const shortest = known.reduce((a, b) => (b.until - b.from < a.until - a.from ? b : a));
  const last = past.findLast((one) => one === shortest || !isKnown(one));
  return limited(
    past.flatMap((one) => (one === last ? { ...one, user: FORGOTTEN } : one === shortest || !isKnown(one) ? [] : one)),
  );
}

function packed(past: readonly Past[]): number[] {
  const [first] = past;
  if (first === undefined) return [];
  const numbers = [first.from];
  let end = first.from;
  for (const { user, from, until } of past) {
    if (from > end) numbers.push(NOBODY, from - end);
    numbers.push(user, until - from);
    end = until;
  }
  return numbers;
}

function unpacked([begin = 0, ...pairs]: readonly number[]): Past[] {
  const past: Past[] = [];
  let from = begin;
  for (let i = 0; i < pairs.length; i += 2) {
    const [user = NOBODY, ms = 0] = pairs.slice(i, i + 2);
    const until = from + ms;
    if (user !== NOBODY) past.push({ user, from, until });
    from = until;
  }
  return past;
}

const pastOf = ({ pastAssignments = [] }: Stored): Past[] => unpacked(pastAssignments);

export function wasAssigned({ userId }: Caller, prospect: Stored, occurredAt: string): boolean {
  const at = Date.parse(occurredAt);
  return pastOf(prospect).some(({ user, from, until }) => user === userId && from <= at && at <= until);
}

/**
 * Returns the users who see only assigned prospects, and whose devices may have a copy of a note or appointment: its author and the
 * assignees of its prospect. An assignment that ended more than 61 days ago does not count, because a cursor of `GET /api/changes` is valid
 * for 60 days. Undefined if the prospect's row does not name all assignees.
 */
export function holdersOf(
  prospect: Assignments,
  { createdAt, createdBy }: { readonly createdAt: string; readonly createdBy: number | null },
  nowMs: number,
): number[] | undefined {
  const oldest = Math.max(Date.parse(createdAt) - limits.clockDifferenceMs, nowMs - limits.pastAssignmentsMs);
  const past = pastOf(prospect).filter(({ until }) => until >= oldest);
  if (!past.every(isKnown)) return undefined;
  const all = [prospect.assignedToUserId, createdBy, ...past.map(({ user }) => user)];
  return [...new Set(all.filter((user) => user !== null))];
}
