/** Makes the items of the notes and appointments of a prospect that becomes visible to the caller or ceases to be visible. */
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

/** Maximum number of notes, and of appointments, of one prospect in a page. For the first record, it is the room in the page. */
export const ATTACHED_AT_ONCE = 32;

/** The stages after stage 0, which is the prospect itself. The cursor contains the stage with which the next page begins. */
export const [NOTES, APPOINTMENTS] = [1, 2];

export interface ProspectRows {
  readonly making: Making;
  readonly types: readonly ChangeType[];
  readonly names: Dictionary;
  readonly prospects: ReadonlyMap<number, StoredProspect>;
}

/**
 * If the last page ended among the notes or appointments, this page continues in the stage `from` after the entry `after`. At most `limit`
 * notes and `limit` appointments are read.
 */
export interface Moving extends Selected {
  readonly from: number;
  readonly after: Order | undefined;
  readonly limit: number;
}

/** Each is undefined if the client does not want them, or already has them. */
export interface FoundAttached {
  readonly notes: Some<StoredNote> | undefined;
  readonly appointments: Some<StoredAppointment> | undefined;
}

/** The result is by prospect id. It does not need the rows of the prospects, so the caller reads these at the same time. */
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
  /** Undefined if no device of the caller can have a copy of the hidden note or appointment. */
  readonly entries: readonly { readonly item: TimedItem | undefined; readonly order: Order }[];
  readonly hasMore: boolean;
}

/** If the prospect has ceased to be visible, the result contains removals. */
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

/** Returns undefined if no device of the caller can have a copy (`holdersOf`). */
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
