/**
 * Finds records that a page of changes can show without reading their rows, because the change log contains copies of their present
 * versions (company-index/copies).
 */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { CopiedAppointment, CopiedNote } from "#shared/company-index/copies/attached.ts";
import { type AttachedChange, appointmentOf, type EntryCopies, noteOf } from "#shared/company-index/copies/entries.ts";
import type { ProspectCopy } from "#shared/company-index/copies/prospect.ts";
import {
  type AttachedCopy,
  type Group,
  readCopies,
  type StoredCopies,
  worthReading,
} from "#shared/company-index/copies/rows.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Reads } from "#shared/db/reads.ts";
import { recentRows } from "#shared/prospects/list/recent-rows.ts";
import type { Selected } from "#shared/sync/changes/selection.ts";

/** The copies that were read together with the change log, and what the log says about them. */
export interface CopiesAtHand {
  /** The copies in entries of the search index that no flush has copied into the change log yet. */
  readonly entries: EntryCopies;
  /** Rows with copies. Flushes (background jobs that copy changes into the log) have stored them. */
  readonly rows: readonly Item[];
  /**
   * The time in the client's cursor, in milliseconds since 1970. All changes that the client has were made before this time. A change that
   * was made before this time, too, may appear in the log after them, because DynamoDB does not isolate a Query from transactions. Its copy
   * could show a record that the client has already removed.
   */
  readonly since: number;
  /** Ids of prospects whose notes and appointments a change in the log may have shown or hidden. The client may already have this change. */
  readonly moved: ReadonlySet<number>;
  /** The highest version of each record in the changes that were read, by the id of the record. The client may already have it. */
  readonly newest: ReadonlyMap<number, number>;
}

/** Copies by the id of the record. The caller may see the prospects of these notes and appointments. */
export interface Copies {
  readonly prospects: Map<number, ProspectCopy>;
  readonly notes: Map<number, CopiedNote>;
  readonly appointments: Map<number, CopiedAppointment>;
}

/** Upper bound for the difference between the clocks of two functions. AWS synchronizes them to less than a millisecond. */
const CLOCK_SKEW_MS = 5;

/** Returns true if a change at this time, in milliseconds since 1970, was made after all changes that the client has. */
export const isNew = (changedAt: number, { since }: Pick<CopiesAtHand, "since">): boolean =>
  changedAt > since + CLOCK_SKEW_MS;

/** Returns true if no change in the log has a higher version of the record. */
export const isNewest = ({ id, version }: Selected, { newest }: CopiesAtHand): boolean =>
  version >= (newest.get(id) ?? 0);

export const noCopies = (): Copies => ({ prospects: new Map(), notes: new Map(), appointments: new Map() });

const isAttached = (change: Selected["change"]): change is AttachedChange =>
  change.kind === "note" || change.kind === "appointment";

/**
 * Returns true if the log shows that the caller may see the note or appointment. The row of its prospect is then not needed. The log
 * contains the assignee of the prospect at the time of the change. It also shows whether the prospect has moved since.
 */
function isSeen(caller: Caller, change: AttachedChange, { moved }: CopiesAtHand): boolean {
  if (moved.has(change.prospectId)) return false;
  const own = visibleAssignee(caller);
  return own === undefined || (change.kind === "note" ? change.assignee : change.after) === own;
}

/**
 * Returns true if the caller may see the note, and its row is enough to show it. Without a copy, this is known only if the note was created
 * since the client's last request, because the log does not say when the other versions of a note were written.
 */
export const isSeenNew = (caller: Caller, { change }: Selected, atHand: CopiesAtHand | undefined): boolean =>
  atHand !== undefined &&
  change.kind === "note" &&
  isNew(change.createdAt ?? 0, atHand) &&
  isSeen(caller, change, atHand);

/** Returns true if the flush of this change has copied the record, as far as the log says. */
function isCopied({ change, copies }: Selected): boolean {
  if (change.kind === "prospect") return change.lacksCopy !== true;
  return isAttached(change) && change.lacksCopy !== true && copies?.hasAttached === true;
}

/** Which records are shown from copies. */
export interface Plan {
  /** The copies that are already in memory. */
  readonly found: Copies;
  /** The rows of copies that must be read, and the records whose copies are probably in these rows. */
  readonly groups: readonly Group[];
  readonly expected: readonly Selected[];
  /** The records whose rows must be read. */
  readonly others: readonly Selected[];
}

/**
 * Decides which records are shown from copies. Prospects that the function has in memory need no copy. A prospect that becomes visible to
 * the caller or ceases to be visible (`moves`) needs its row, because the row says who may have copies of its notes and appointments.
 *
 * @param namesVersion the version of the company's names (statuses, tags and users)
 */
export function planCopies(
  table: Reads,
  caller: Caller,
  records: readonly Selected[],
  namesVersion: number,
  atHand: CopiesAtHand,
): Plan {
  const { companyId } = caller;
  const recent = recentRows(table, companyId, namesVersion);
  const mayCopy = (record: Selected): boolean => {
    const { change } = record;
    if (!isNewest(record, atHand)) return false;
    if (change.kind === "prospect") return !change.isDeleted && !record.moves && recent.get(record) === undefined;
    return isAttached(change) && !change.isDeleted && isSeen(caller, change, atHand);
  };
  const found = noCopies();
  const wanted: Selected[] = [];
  const others: Selected[] = [];
  for (const record of records) {
    if (!mayCopy(record)) others.push(record);
    else if (!keepFromEntry(found, record, atHand)) (isCopied(record) ? wanted : others).push(record);
  }
  const groups = worthReading(companyId, wanted, atHand.rows);
  const ids = new Set(groups.flatMap((group) => group.wanted.map(({ id }) => id)));
  const expected = wanted.filter(({ id }) => ids.has(id));
  return { found, groups, expected, others: [...others, ...wanted.filter(({ id }) => !ids.has(id))] };
}

/** Reads the planned rows of copies. Returns the copies, and the records of `expected` that have none. Their rows must be read. */
export async function readPlanned(
  table: Reads,
  { found, groups, expected }: Plan,
  atHand: CopiesAtHand,
): Promise<{ copies: Copies; left: readonly Selected[] }> {
  const stored = await readCopies(table, groups, atHand.rows);
  const left = expected.filter((record) => !keep(found, record, copyOf(record, stored), atHand));
  return { copies: found, left };
}

type Copy = ProspectCopy | AttachedCopy | undefined;

const copyOf = ({ id, change }: Selected, { prospects, attached }: StoredCopies): Copy =>
  change.kind === "prospect" ? prospects.get(id) : attached.get(id);

function keepFromEntry(into: Copies, record: Selected, atHand: CopiesAtHand): boolean {
  const { change } = record;
  const { entries } = atHand;
  const copy = isAttached(change) ? entries.attached(change) : entries.prospect(record);
  return keep(into, record, copy, atHand);
}

/** Keeps the copy and returns true. Returns false if there is no copy, or if its change is not new. */
function keep(into: Copies, { id, change }: Selected, copy: Copy, atHand: CopiesAtHand): boolean {
  if (copy === undefined) return false;
  if (!("text" in copy)) {
    if (!isNew(copy.changedAt, atHand)) return false;
    into.prospects.set(id, copy);
    return true;
  }
  if (change.kind === "note") {
    const note = change.createdAt === undefined ? undefined : noteOf(copy, change);
    if (note === undefined || !isNew(note.updatedAt, atHand)) return false;
    into.notes.set(id, note);
    return true;
  }
  const appointment = appointmentOf(copy);
  if (appointment === undefined || !isNew(appointment.updatedAt, atHand)) return false;
  into.appointments.set(id, appointment);
  return true;
}
