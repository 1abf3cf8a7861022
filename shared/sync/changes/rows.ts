/** Reads the rows of the records that a page of changes has selected. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { AppointmentChange, NoteChange } from "#shared/company-index/change-log.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import { type ListedRow, StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";
import { noteKey, rowsAt, type WantedRow } from "#shared/sync/changes/attached.ts";
import type { Selected } from "#shared/sync/changes/selection.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

/** By record id. A row that does not exist is missing. */
export interface RecordRows {
  readonly prospects: ReadonlyMap<number, ListedRow>;
  readonly notes: ReadonlyMap<number, StoredNote>;
  readonly appointments: ReadonlyMap<number, StoredAppointment>;
  readonly territories: ReadonlyMap<number, StoredTerritory>;
  /** Ids of notes and appointments that the caller may see according to the log. The rows of their prospects may be outdated. */
  readonly seen: ReadonlySet<number>;
}

/** What the log says if it contains no later changes than those that were read. */
export interface EndOfLog {
  /**
   * All changes that the client has were made before this time, in milliseconds since 1970. An earlier change may appear in the log after
   * them, because DynamoDB does not isolate a Query from transactions.
   */
  readonly since: number;
  /** Prospects whose notes and appointments a change in the log may have shown or hidden, even if the client has this change. */
  readonly moved: ReadonlySet<number>;
}

/** Upper bound for the difference between the clocks of two functions. AWS synchronizes them to less than a millisecond. */
const CLOCK_SKEW_MS = 5;

type AttachedChange = NoteChange | AppointmentChange;
interface SelectedAttached extends Selected {
  readonly change: AttachedChange;
}

const isPresentAttached = (record: Selected): record is SelectedAttached =>
  (record.change.kind === "note" || record.change.kind === "appointment") && !record.change.isDeleted;

/** The log contains the prospect's assignee at the time of the change, and later assignments, deletions and restores. */
function isSeen(caller: Caller, change: AttachedChange, end: EndOfLog | undefined): boolean {
  if (end === undefined || end.moved.has(change.prospectId)) return false;
  const own = visibleAssignee(caller);
  return own === undefined || (change.kind === "note" ? change.assignee : change.after) === own;
}

/**
 * Reads the rows, each in the record's version or a later one. An outdated row of a prospect would show it, or its notes, to a user who may
 * not see it any more. If `end` is undefined and the caller sees only some prospects, the current rows are therefore read. The prospects of
 * notes and appointments must be current too, unless the log shows that the caller may see them.
 *
 * @param namesVersion the version of the dictionary
 */
export async function readRecordRows(
  table: Reads,
  caller: Caller,
  records: readonly Selected[],
  namesVersion: number,
  end: EndOfLog | undefined,
): Promise<RecordRows> {
  const { companyId } = caller;
  const refs = records.filter(({ change }) => change.kind === "prospect");
  const isCurrentNeeded = end === undefined && visibleAssignee(caller) !== undefined;
  const attached = records.filter(isPresentAttached);
  const seen = new Map<number, SelectedAttached>();
  const current = new Set(isCurrentNeeded ? refs.map(({ id }) => id) : []);
  const recent = new Set<number>();
  for (const record of attached) {
    const isKnown = isSeen(caller, record.change, end);
    if (isKnown) seen.set(record.id, record);
    (isKnown ? recent : current).add(record.change.prospectId);
  }
  const noteKeys = new Map<number, WantedRow>();
  const appointmentKeys = new Map<number, WantedRow>();
  const territoryKeys = new Map<number, WantedRow>();
  for (const { id, version, change } of records) {
    if (change.kind === "note" && !change.isDeleted && change.createdAt !== undefined)
      noteKeys.set(id, { ...noteKey(companyId, change.prospectId, change.createdAt, id), version });
    if (change.kind === "appointment" && !change.isDeleted)
      appointmentKeys.set(id, { ...attachedKeys.appointment(companyId, change.prospectId, id), version });
    if (change.kind === "territory" && !change.isDeleted) {
      const createdAt = new Date(change.createdAt ?? 0).toISOString();
      territoryKeys.set(id, { ...keys.territory(companyId, createdAt, id), version });
    }
  }
  const [prospects, note, appointment, territory] = await Promise.all([
    rowsAtLeast(table, companyId, refs, namesVersion, current, recent),
    rowsAt(table, [...noteKeys.values()], (item) => StoredNote.parse(item)),
    rowsAt(table, [...appointmentKeys.values()], (item) => StoredAppointment.parse(item)),
    rowsAt(table, [...territoryKeys.values()], (item) => StoredTerritory.parse(item)),
  ]);
  const [notes, appointments] = [found(noteKeys, note), found(appointmentKeys, appointment)];
  const late = new Set<number>();
  for (const { id, version, change } of seen.values()) {
    const row = notes.get(id) ?? appointments.get(id);
    const isNew = Date.parse(row?.updatedAt ?? "") > (end?.since ?? 0) + CLOCK_SKEW_MS;
    if (row?.version === version && isNew && prospects.has(change.prospectId)) continue;
    seen.delete(id);
    if (row !== undefined) late.add(change.prospectId);
  }
  const parents = late.size === 0 ? [] : await rowsAtLeast(table, companyId, [], namesVersion, late);
  return {
    prospects: new Map([...prospects, ...parents]),
    notes,
    appointments,
    territories: found(territoryKeys, territory),
    seen: new Set(seen.keys()),
  };
}

function found<Row>(wanted: ReadonlyMap<number, WantedRow>, rowAt: (key: WantedRow) => Row | undefined) {
  const rows = new Map<number, Row>();
  for (const [id, key] of wanted) {
    const row = rowAt(key);
    if (row !== undefined) rows.set(id, row);
  }
  return rows;
}
