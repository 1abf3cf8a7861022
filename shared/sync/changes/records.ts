/** Makes the items of the records that a page of changes has selected, from their current rows. */

import type { Caller } from "#shared/auth/caller.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { type Dictionary, freshDictionary } from "#shared/reference/dictionary.ts";
import type { PartialChange } from "#shared/sync/changes/cursor.ts";
import {
  appointmentItem,
  hiddenBecause,
  type Making,
  noteItem,
  type PageItems,
  PROSPECTS_AT_ONCE,
  prospectItem,
  removal,
  statusItem,
  type TimedItem,
  tagItem,
  territoryItem,
  userItem,
} from "#shared/sync/changes/items.ts";
import {
  ATTACHED_AT_ONCE,
  type Attached,
  attachedItems,
  type Moving,
  NOTES,
  type ProspectRows,
  readAttached,
} from "#shared/sync/changes/moves.ts";
import { type EndOfLog, type RecordRows, readRecordRows } from "#shared/sync/changes/rows.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";
import { type Selected, typeOf } from "#shared/sync/changes/selection.ts";

/** Maximum number of prospects in a page that become visible or hidden. Their notes and appointments need items, too. */
const MOVES_AT_ONCE = 64;
export interface Taken {
  /** Number of records with all their items in the page. */
  readonly records: number;
  /** The next record, if only some of its items are in the page. */
  readonly partial: PartialChange | undefined;
}

export interface KnownOfCompany {
  /** The version of the dictionary. */
  readonly namesVersion: number;
  readonly namesOf: () => Promise<Dictionary>;
  /** Undefined if later chunks of the log may contain newer changes of the records. */
  readonly end: EndOfLog | undefined;
}

/** Adds the items in the order of the records, as far as they fit. */
export async function addRecords(
  making: Making,
  types: readonly ChangeType[],
  records: readonly Selected[],
  partial: PartialChange | undefined,
  known: KnownOfCompany,
  page: PageItems,
): Promise<Taken> {
  let moves = 0;
  const [first] = records;
  const begun = first !== undefined && isSame(partial, first) ? partial : undefined;
  for (let done = 0; done < records.length; done += PROSPECTS_AT_ONCE) {
    const some = beforeMove(records.slice(done, done + PROSPECTS_AT_ONCE), MOVES_AT_ONCE - moves);
    if (some.length === 0) return { records: done, partial: undefined };
    const moving = some
      .filter(({ moves: isMoving }) => isMoving)
      .map((record): Moving => {
        if (record !== first) return { ...record, from: NOTES, after: undefined, limit: ATTACHED_AT_ONCE };
        const { stage, after } = begun !== undefined && begun.stage >= NOTES ? begun : { stage: NOTES };
        return { ...record, from: stage, after, limit: Math.max(1, page.room) };
      });
    const [rows, attached] = await Promise.all([
      readRows(making, types, some, known),
      readAttached(making, types, moving),
    ]);
    for (const [i, record] of some.entries()) {
      const from = record === first ? begun : undefined;
      if (record.moves) moves++;
      const cut = await addRecord(rows, record, from, attachedItems(rows, record, attached.get(record.id)), page);
      if (cut !== undefined) return { records: done + i, partial: cut === "unchanged" ? from : cut };
    }
    if (some.length < Math.min(PROSPECTS_AT_ONCE, records.length - done))
      return { records: done + some.length, partial: undefined };
  }
  return { records: records.length, partial: undefined };
}

/** Returns the records before the one with which the page would have more than `moves` moves, because the page ends there. */
function beforeMove(records: readonly Selected[], moves: number): readonly Selected[] {
  let left = moves;
  const end = records.findIndex(({ moves: isMoving }) => isMoving && --left < 0);
  return end === -1 ? records : records.slice(0, end);
}

/** True if the last page ended within this change. A newer change may have hidden what the client has, so its items begin again. */
const isSame = (partial: PartialChange | undefined, { id, version }: Selected): boolean =>
  partial?.key.id === id && partial.key.version === version;

interface Rows extends ProspectRows, RecordRows {
  readonly prospects: RecordRows["prospects"];
}

async function readRows(
  { context, caller, nowMs }: Making,
  types: readonly ChangeType[],
  records: readonly Selected[],
  { namesVersion, namesOf, end }: KnownOfCompany,
): Promise<Rows> {
  const making = { context, caller, nowMs };
  const [names, rows] = await Promise.all([
    namesOf().then((known) => namesWith(making, known, records)),
    readRecordRows(context.table, caller, records, namesVersion, end),
  ]);
  return { making, types, names, ...rows };
}

/** Maximum number of reads of the dictionary. They are not isolated from a transaction whose entry in the log is already visible. */
const NAMES_TRIES = 5;

/** The dictionary contains the selected statuses, tags and users in their versions or later ones. */
async function namesWith(
  { context, caller }: Making,
  known: Dictionary,
  records: readonly Selected[],
): Promise<Dictionary> {
  let names = known;
  for (let tries = 1; tries <= NAMES_TRIES; tries++) {
    const { statuses, tags, users } = names;
    const isBehind = records.some(({ id, version, change: { kind, isDeleted } }) => {
      const all = kind === "status" ? statuses : kind === "tag" ? tags : kind === "user" ? users : undefined;
      const found = all?.get(id)?.version;
      // A tag that is missing was deleted later, and this deletion is in the log too.
      const isGone = kind === "tag" && found === undefined && tries > 1;
      return all !== undefined && !isDeleted && !isGone && (found ?? 0) < version;
    });
    if (!isBehind) break;
    names = await freshDictionary(context, caller.companyId);
  }
  return names;
}

/** Returns undefined if all items fit, where the next page continues otherwise, or "unchanged" if not even one item fits. */
async function addRecord(
  rows: Rows,
  record: Selected,
  partial: PartialChange | undefined,
  attached: readonly Attached[],
  page: PageItems,
): Promise<PartialChange | "unchanged" | undefined> {
  const { types } = rows;
  const key = { id: record.id, version: record.version };
  let cut: PartialChange | "unchanged" = "unchanged";
  if ((partial?.stage ?? 0) === 0) {
    const item = types.includes(typeOf[record.change.kind]) ? await ownItem(rows, record) : undefined;
    if (item !== undefined && !page.add(item)) return cut;
    if (!record.moves) return undefined;
    cut = { key, stage: NOTES, after: undefined };
  }
  for (const { stage, entries, hasMore } of attached) {
    for (const { item, order } of entries) {
      if (item !== undefined && !page.add(item)) return cut;
      cut = { key, stage, after: order };
    }
    if (hasMore) return cut;
  }
  return undefined;
}

async function ownItem(
  { making, names, ...rows }: Rows,
  { id, version, change }: Selected,
): Promise<TimedItem | undefined> {
  if (change.kind !== "prospect" && change.isDeleted) {
    return { item: removal(typeOf[change.kind], id, shownVersion(version), "deleted") };
  }
  switch (change.kind) {
    case "prospect": {
      const row = rows.prospects.get(id);
      if (row === undefined) throw new Error(`the row of prospect ${id} was not read`);
      return prospectItem(making, row, names);
    }
    case "note": {
      const row = rows.notes.get(id);
      const parentVersion = parentVersionOf(making.caller, rows, id, change.prospectId);
      return row === undefined || parentVersion === undefined ? undefined : noteItem(row, parentVersion, names);
    }
    case "appointment": {
      const row = rows.appointments.get(id);
      const parentVersion = parentVersionOf(making.caller, rows, id, change.prospectId);
      return row === undefined || parentVersion === undefined ? undefined : appointmentItem(row, parentVersion, names);
    }
    case "territory": {
      const row = rows.territories.get(id);
      return row === undefined ? undefined : territoryItem(row);
    }
    case "status": {
      const row = names.statuses.get(id);
      return row === undefined ? undefined : statusItem(row);
    }
    case "tag": {
      const row = names.tags.get(id);
      return row === undefined ? undefined : tagItem(row);
    }
    case "user": {
      const row = names.users.get(id);
      return row === undefined ? undefined : userItem(row, making.nowMs);
    }
  }
}

/** Returns undefined if the caller may not see the prospect. */
function parentVersionOf(
  caller: Caller,
  { prospects, seen }: RecordRows,
  id: number,
  prospectId: number,
): number | undefined {
  const prospect = prospects.get(prospectId);
  const isVisible = prospect !== undefined && (seen.has(id) || hiddenBecause(caller, prospect) === undefined);
  return isVisible ? prospect.version : undefined;
}
