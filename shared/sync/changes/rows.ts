/** Reads the rows of the records that a page of changes has selected. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import { findNoteLocators, type NoteLocator } from "#shared/prospects/rows.ts";
import { type ListedRow, StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";
import { noteKey, rowsAt, type WantedRow } from "#shared/sync/changes/attached.ts";
import type { Selected } from "#shared/sync/changes/selection.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

/** Rows by the id of the record. A row that does not exist is missing. */
export interface RecordRows {
  readonly prospects: ReadonlyMap<number, ListedRow>;
  readonly notes: ReadonlyMap<number, StoredNote>;
  readonly appointments: ReadonlyMap<number, StoredAppointment>;
  readonly territories: ReadonlyMap<number, StoredTerritory>;
}

export interface RowOptions {
  /** The version of the company's names (statuses, tags and users). */
  readonly namesVersion: number;
  /** Returns true if the row of the record's prospect is also needed. It is called for notes and appointments. */
  readonly withParent: (record: Selected) => boolean;
  /** True if the log may contain newer versions of the records than these. */
  readonly isOutdated: boolean;
}

/**
 * Reads the rows of the records, each in the record's version or a later one. An outdated row of a prospect would show it, or its notes, to
 * a user who may not see it any more. If the records may be outdated, and the caller sees only some prospects, the current rows are read.
 */
export async function readRecordRows(
  table: Reads,
  caller: Caller,
  records: readonly Selected[],
  { namesVersion, withParent, isOutdated }: RowOptions,
): Promise<RecordRows> {
  const { companyId } = caller;
  const refs = records.filter(({ change }) => change.kind === "prospect");
  const isCurrentNeeded = isOutdated && visibleAssignee(caller) !== undefined;
  const current = new Set(isCurrentNeeded ? refs.map(({ id }) => id) : []);
  for (const id of parentsOf(records, withParent)) current.add(id);
  const noteKeys = await noteKeysOf(table, companyId, records);
  const appointmentKeys = new Map<number, WantedRow>();
  const territoryKeys = new Map<number, WantedRow>();
  for (const { id, version, change } of records) {
    if (change.kind === "appointment" && !change.isDeleted)
      appointmentKeys.set(id, { ...attachedKeys.appointment(companyId, change.prospectId, id), version });
    if (change.kind === "territory" && !change.isDeleted) {
      const createdAt = new Date(change.createdAt ?? 0).toISOString();
      territoryKeys.set(id, { ...keys.territory(companyId, createdAt, id), version });
    }
  }
  const [prospects, note, appointment, territory] = await Promise.all([
    rowsAtLeast(table, companyId, refs, namesVersion, current),
    rowsAt(table, [...noteKeys.values()], (item) => StoredNote.parse(item)),
    rowsAt(table, [...appointmentKeys.values()], (item) => StoredAppointment.parse(item)),
    rowsAt(table, [...territoryKeys.values()], (item) => StoredTerritory.parse(item), false),
  ]);
  return {
    prospects,
    notes: found(noteKeys, note),
    appointments: found(appointmentKeys, appointment),
    territories: found(territoryKeys, territory),
  };
}

/**
 * Returns the ids of the prospects of those notes and appointments for which `withParent` returns true. The prospects decide who may see
 * these. The log entry of a note or appointment does not contain the version of its prospect, so an outdated row would not be noticed. The
 * rows of these prospects must therefore be current.
 */
function parentsOf(records: readonly Selected[], withParent: RowOptions["withParent"]): number[] {
  return records.flatMap((record) => {
    const { change } = record;
    const isAttached = (change.kind === "note" || change.kind === "appointment") && !change.isDeleted;
    return isAttached && withParent(record) ? [change.prospectId] : [];
  });
}

/** Returns the keys of the notes. The log entries of release 0.1.0 do not contain the creation time, which is part of the key. */
async function noteKeysOf(
  table: Reads,
  companyId: number,
  records: readonly Selected[],
): Promise<Map<number, WantedRow>> {
  const notes = records.flatMap(({ change }) => (change.kind === "note" && !change.isDeleted ? [change] : []));
  const unplaced = notes.filter(({ createdAt }) => createdAt === undefined).map(({ id }) => id);
  const locators =
    unplaced.length === 0 ? new Map<number, NoteLocator>() : await findNoteLocators(table, companyId, unplaced);
  const noteKeys = new Map<number, WantedRow>();
  for (const { id, version, prospectId, createdAt } of notes) {
    const at = createdAt ?? Date.parse(locators.get(id)?.createdAt ?? "");
    if (!Number.isNaN(at)) noteKeys.set(id, { ...noteKey(companyId, prospectId, at, id), version });
  }
  return noteKeys;
}

function found<Row>(wanted: ReadonlyMap<number, WantedRow>, rowAt: (key: WantedRow) => Row | undefined) {
  const rows = new Map<number, Row>();
  for (const [id, key] of wanted) {
    const row = rowAt(key);
    if (row !== undefined) rows.set(id, row);
  }
  return rows;
}

export const mergedRows = (a: RecordRows, b: RecordRows): RecordRows => ({
  prospects: new Map([...a.prospects, ...b.prospects]),
  notes: new Map([...a.notes, ...b.notes]),
  appointments: new Map([...a.appointments, ...b.appointments]),
  territories: new Map([...a.territories, ...b.territories]),
});
