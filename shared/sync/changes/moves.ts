/**
 * Makes the items of the notes and appointments of a prospect that becomes visible to the caller or ceases to be visible. The device gets
 * the notes and appointments with the prospect, or removes them with it.
 */
import { visibleAssignee } from "#shared/auth/caller.ts";
import { holdersOf } from "#shared/prospects/assignments.ts";
import type { StoredAppointment, StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { appointmentsAfter, notesAfter, type Some } from "#shared/sync/changes/attached.ts";
import {
  appointmentItem,
  attachedVersion,
  hiddenBecause,
  type Making,
  noteItem,
  removal,
  type TimedItem,
} from "#shared/sync/changes/items.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";
import { type Selected, typeOf } from "#shared/sync/changes/selection.ts";

/**
 * Maximum number of notes, and of appointments, that one page reads of a prospect that becomes visible or ceases to be visible. For the
 * first record of a page, the limit is the room in the page instead.
 */
export const ATTACHED_AT_ONCE = 32;

/**
 * A prospect that becomes visible or ceases to be visible is added to the feed in three stages: 0 is the prospect itself, 1 its notes, and
 * 2 its appointments. If a page ends between them, the cursor contains the stage with which the next page begins.
 */
export const [NOTES, APPOINTMENTS] = [1, 2];

/** The data that is needed to make the items of the notes and appointments of a page's prospects. */
export interface ProspectRows {
  readonly making: Making;
  readonly types: readonly ChangeType[];
  readonly names: Dictionary;
  readonly prospects: ReadonlyMap<number, StoredProspect>;
}

/**
 * A prospect that becomes visible to the caller or ceases to be visible. If the last page ended among its notes or appointments, this page
 * continues in the stage `from` (notes or appointments), after the entry whose order is `after`. Otherwise it begins with the first note,
 * and `after` is undefined. At most `limit` notes and `limit` appointments are read.
 */
export interface Moving extends Selected {
  readonly from: number;
  readonly after: Order | undefined;
  readonly limit: number;
}

/** The first notes and appointments of a prospect. Each is undefined if the client does not want them, or already has them. */
export interface FoundAttached {
  readonly notes: Some<StoredNote> | undefined;
  readonly appointments: Some<StoredAppointment> | undefined;
}

/**
 * Reads the notes and appointments of the prospects, by the id of the prospect. It does not need the rows of the prospects, so the caller
 * reads these at the same time.
 */
export async function readAttached(
  { context: { table }, caller: { companyId } }: Making,
  types: readonly ChangeType[],
  moving: readonly Moving[],
): Promise<ReadonlyMap<number, FoundAttached>> {
  const read = async ({ id, from, after, limit }: Moving): Promise<[number, FoundAttached]> => {
    const beginsAt = from === APPOINTMENTS ? after?.[0] : undefined;
    const [notes, appointments] = await Promise.all([
      types.includes("notes") && from <= NOTES ? notesAfter(table, companyId, id, after ?? [], limit) : undefined,
      types.includes("appointments") ? appointmentsAfter(table, companyId, id, beginsAt, limit) : undefined,
    ]);
    return [id, { notes, appointments }];
  };
  return new Map(await Promise.all(moving.map(read)));
}

/** Returns the items of the notes and appointments of a prospect that has become visible to the caller or has ceased to be visible. */
export function attachedItems(rows: ProspectRows, record: Selected, found: FoundAttached | undefined): Attached[] {
  const prospect = rows.prospects.get(record.id);
  if (prospect === undefined || found === undefined) return [];
  const { notes, appointments } = found;
  return [
    ...(notes === undefined ? [] : [notesOf(rows, prospect, notes)]),
    ...(appointments === undefined ? [] : [appointmentsOf(rows, prospect, appointments)]),
  ];
}

export type Order = readonly [number, number, number];

export interface Attached {
  readonly stage: number;
  /** The item is undefined if no device of the caller can have a copy of the hidden note or appointment. No removal is then needed. */
  readonly entries: readonly { readonly item: TimedItem | undefined; readonly order: Order }[];
  readonly hasMore: boolean;
}

/** Returns the notes of a prospect that has become visible to the caller, or the removals of its notes if it has ceased to be visible. */
const notesOf = (rows: ProspectRows, prospect: StoredProspect, notes: Some<StoredNote>): Attached => ({
  stage: NOTES,
  entries: notes.rows.map((row) => ({
    order: [Date.parse(row.createdAt), row.id, 0] as const,
    item: isHidden(rows, prospect) ? removalOf(rows, prospect, row) : noteItem(row, prospect.version, rows.names),
  })),
  hasMore: notes.hasMore,
});

const appointmentsOf = (
  rows: ProspectRows,
  prospect: StoredProspect,
  appointments: Some<StoredAppointment>,
): Attached => ({
  stage: APPOINTMENTS,
  entries: appointments.rows.map((row) => ({
    order: [row.id, 0, 0] as const,
    item: isHidden(rows, prospect)
      ? removalOf(rows, prospect, row)
      : appointmentItem(row, prospect.version, rows.names),
  })),
  hasMore: appointments.hasMore,
});

const isHidden = ({ making: { caller } }: ProspectRows, prospect: StoredProspect): boolean =>
  hiddenBecause(caller, prospect) !== undefined;

/** Returns the removal of a note or appointment. Returns undefined if no device of the caller can have a copy of it (`holdersOf`). */
function removalOf(
  { making: { caller, nowMs }, names }: ProspectRows,
  prospect: StoredProspect,
  row: StoredNote | StoredAppointment,
): TimedItem | undefined {
  const reason = hiddenBecause(caller, prospect);
  const own = visibleAssignee(caller);
  const holders = own === undefined ? undefined : holdersOf(prospect, row, nowMs);
  if (reason === undefined || (own !== undefined && holders?.includes(own) === false)) return undefined;
  return { item: removal(typeOf[row.type], row.id, attachedVersion(row, prospect.version, names), reason) };
}
