/**
 * Makes the items of the notes and appointments of a prospect that becomes visible to the caller or ceases to be visible. The device gets
 * the notes and appointments with the prospect, or removes them with it.
 */
import { visibleAssignee } from "#shared/auth/caller.ts";
import type { Reads } from "#shared/db/reads.ts";
import { holdersOf } from "#shared/prospects/assignments.ts";
import type { StoredAppointment, StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { appointmentsAfter, firstNotes, notesAfter, type Some } from "#shared/sync/changes/attached.ts";
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

/** The notes and appointments that are read at the same time as the rows of their prospects, by the id of the prospect. */
export interface Early {
  readonly notes: ReadonlyMap<number, Some<StoredNote>>;
  readonly appointments: ReadonlyMap<number, Some<StoredAppointment>>;
}

/**
 * Reads the notes and appointments of the prospects. The caller reads the rows of the prospects at the same time, because two calls to
 * DynamoDB one after the other would take longer. Appointments are read only if the change log says that the prospect has some, because a
 * Query that finds nothing costs as much as one that finds a few.
 */
export async function readEarly(
  { context: { table }, caller: { companyId } }: Making,
  types: readonly ChangeType[],
  moving: readonly Moving[],
): Promise<Early> {
  const withNotes = types.includes("notes") ? moving.filter(({ from }) => from <= NOTES) : [];
  const withAppointments = types.includes("appointments") ? moving.filter((record) => record.movesAppointments) : [];
  const isUsual = ({ after, limit }: Moving): boolean => after === undefined && limit === ATTACHED_AT_ONCE;
  const usual = withNotes.filter(isUsual).map(({ id }) => id);
  const others = withNotes.filter((record) => !isUsual(record));
  const [first, notes, appointments] = await Promise.all([
    firstNotes(table, companyId, usual, ATTACHED_AT_ONCE),
    ofEach(others, ({ id, after, limit }) => notesAfter(table, companyId, id, after ?? [], limit)),
    ofEach(withAppointments, (record) => readAppointments(table, companyId, record)),
  ]);
  return { notes: new Map([...first, ...notes]), appointments };
}

const ofEach = async <T>(moving: readonly Moving[], read: (one: Moving) => Promise<T>): Promise<Map<number, T>> =>
  new Map(await Promise.all(moving.map(async (record) => [record.id, await read(record)] as const)));

const readAppointments = (table: Reads, companyId: number, { id, from, after, limit }: Moving) =>
  appointmentsAfter(table, companyId, id, from === APPOINTMENTS ? after?.[0] : undefined, limit);

/** Returns the items of the notes and appointments of a prospect that has become visible to the caller or has ceased to be visible. */
export async function readAttached(rows: ProspectRows, record: Moving, early: Early): Promise<Attached[]> {
  const prospect = rows.prospects.get(record.id);
  if (prospect === undefined) return [];
  const { context, caller } = rows.making;
  const isWanted = prospect.agendaUntil !== undefined && rows.types.includes("appointments");
  const known = early.appointments.get(record.id);
  const appointments =
    known ?? (isWanted ? await readAppointments(context.table, caller.companyId, record) : undefined);
  const notes = early.notes.get(record.id);
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
