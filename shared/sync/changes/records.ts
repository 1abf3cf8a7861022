/** Reads the current rows of the records that were selected for a page of `GET /api/changes`, and makes their items. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { visibleAssignee } from "#shared/auth/caller.ts";
import type { AppointmentChange, Change, NoteChange } from "#shared/company-index/change-log.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Consistency, Reads } from "#shared/db/reads.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { type ListedRow, StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";
import { type Dictionary, freshDictionary } from "#shared/reference/dictionary.ts";
import { attachedAfter } from "#shared/sync/changes/attached.ts";
import { firstPlace, isWithin, type PartialChange, type Place } from "#shared/sync/changes/cursor.ts";
import {
  attachedItem,
  hiddenBecause,
  type Making,
  movedItem,
  type PageItems,
  PROSPECTS_AT_ONCE,
  prospectItem,
  removal,
  sharedItem,
  type TimedItem,
  typeOf,
} from "#shared/sync/changes/items.ts";
import type { Selected } from "#shared/sync/changes/selection.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

/** Maximum number of prospects in a page that become visible or hidden. Their notes and appointments need items too. */
const MOVES_AT_ONCE = 64;
/** Maximum number of notes, and of appointments, of one prospect in a page. The first record of a page may have more, up to a full page. */
const ATTACHED_AT_ONCE = 32;

interface Taken {
  /** Number of records whose items are all in the page. */
  readonly records: number;
  /** The next record, if only some of its items are in the page. */
  readonly partial: PartialChange | undefined;
}

/** Known only after a read that has reached the end of the change log. */
interface EndOfLog {
  /**
   * All changes that the client has were made before this time, in milliseconds since 1970. An earlier change may still appear in the log
   * later, because DynamoDB does not isolate a Query from transactions.
   */
  readonly since: number;
  /** Prospects whose notes and appointments may have become visible or hidden, also by changes that the client already has. */
  readonly moved: ReadonlySet<number>;
}

interface KnownOfCompany {
  readonly namesVersion: number;
  readonly namesOf: () => Promise<Dictionary>;
  /** Undefined if later chunks of the log may contain newer changes of the records. */
  readonly end: EndOfLog | undefined;
}

/** Adds the items of the records to the page, in the order of the records, as far as the page has room. */
export async function addRecords(
  making: Making,
  records: readonly Selected[],
  partial: PartialChange | undefined,
  known: KnownOfCompany,
  page: PageItems,
): Promise<Taken> {
  let moves = 0;
  const excess = records.findIndex((record) => record.moves && ++moves > MOVES_AT_ONCE);
  const taken = excess === -1 ? records : records.slice(0, excess);
  const [first] = taken;
  // The last page may have ended within an older change of the record. A newer change may then have hidden notes and appointments that the
  // client has, so the page begins again with the first item of the record.
  const begun = first !== undefined && isWithin(partial, first) ? partial : undefined;
  for (let done = 0; done < taken.length; done += PROSPECTS_AT_ONCE) {
    const some = taken.slice(done, done + PROSPECTS_AT_ONCE);
    const reads = some.map((record) => {
      if (!record.moves) return [];
      if (record !== first) return readAttached(making, record, firstPlace, ATTACHED_AT_ONCE);
      return readAttached(making, record, begun ?? firstPlace, Math.max(1, page.room));
    });
    const [rows, attached] = await Promise.all([readRows(making, some, known), Promise.all(reads)]);
    for (const [i, record] of some.entries()) {
      const from = record === first ? begun : undefined;
      const cut = await addRecord(rows, record, from, at(attached, i), page);
      if (cut !== undefined) return { records: done + i, partial: cut };
    }
  }
  return { records: taken.length, partial: undefined };
}

/** The types of the stages 1 and 2. Stage 0 is the record itself. Cursors contain the number of a stage, so the order must not change. */
const attachedTypes = ["notes", "appointments"] as const;

async function readAttached(
  { context, caller, types }: Making,
  { id: prospectId }: Selected,
  from: Place,
  limit: number,
) {
  const found = attachedTypes.map(async (type, i) => {
    const stage = i + 1;
    if (!types.includes(type) || stage < from.stage) return [];
    const after = stage === from.stage ? from.after : undefined;
    return [{ stage, ...(await attachedAfter(context.table, caller.companyId, { type, prospectId, after, limit })) }];
  });
  return (await Promise.all(found)).flat();
}

/** Adds the items of a record. Returns where the next page continues within the record, or undefined if all items fit. */
async function addRecord(
  rows: Rows,
  record: Selected,
  partial: PartialChange | undefined,
  attached: Awaited<ReturnType<typeof readAttached>>,
  page: PageItems,
): Promise<PartialChange | undefined> {
  const key = { id: record.id, version: record.version };
  let cut = partial ?? { key, ...firstPlace };
  if (cut.stage === 0) {
    const item = rows.making.types.includes(typeOf[record.change.kind]) ? await ownItem(rows, record) : undefined;
    if (item !== undefined && !page.add(item)) return cut;
    cut = { key, stage: 1, after: undefined };
  }
  for (const { stage, rows: some, hasMore } of attached) {
    for (const { row, order } of some) {
      const item = movedItem(rows.making, row, prospectIn(rows, record.id), rows.names);
      if (item !== undefined && !page.add(item)) return cut;
      cut = { key, stage, after: order };
    }
    if (hasMore) return cut;
  }
  return undefined;
}

async function ownItem(rows: Rows, { id, version, change }: Selected): Promise<TimedItem | undefined> {
  const { making, names } = rows;
  if (change.kind === "prospect") return prospectItem(making, prospectIn(rows, id), names);
  if (change.isDeleted) return removal(typeOf[change.kind], id, shownVersion(version), "deleted");
  const row = rows.others.get(id) ?? names.statuses.get(id) ?? names.tags.get(id) ?? names.users.get(id);
  if (row === undefined) return undefined;
  if (row.type !== "note" && row.type !== "appointment") return sharedItem(row, making.nowMs);
  const prospect = rows.prospects.get(row.prospectId);
  const isSeen = prospect && hiddenBecause(making.caller, prospect) === undefined;
  return isSeen ? attachedItem(row, prospect.version, names) : undefined;
}

const OtherRow = z.discriminatedUnion("type", [StoredNote, StoredAppointment, StoredTerritory]);
type OtherRow = z.infer<typeof OtherRow>;

interface Rows {
  readonly making: Making;
  readonly names: Dictionary;
  readonly prospects: ReadonlyMap<number, ListedRow>;
  /** Notes, appointments and territories by id. */
  readonly others: ReadonlyMap<number, OtherRow>;
}

function prospectIn({ prospects }: Rows, id: number): ListedRow {
  const row = prospects.get(id);
  if (row === undefined) throw new Error(`the row of prospect ${id} was not read`);
  return row;
}

/** Upper bound for the difference between the clocks of two functions, which AWS synchronizes to less than a millisecond. */
const CLOCK_SKEW_MS = 5;

/**
 * Reads the rows of the records, each in the record's version or a later one. An outdated row of a prospect would show the prospect, or its
 * notes, to a user who may not see it any more. A caller who sees only assigned prospects therefore needs the current rows of prospects if
 * the log may contain later changes of them (`end` is undefined). A note or appointment needs the current row of its prospect, unless the
 * log shows that the caller sees the prospect: the log entry has the assignee of that time, and `end.moved` has the prospects that may be
 * hidden since.
 */
async function readRows(
  making: Making,
  records: readonly Selected[],
  { namesVersion, namesOf, end }: KnownOfCompany,
): Promise<Rows> {
  const { table } = making.context;
  const { companyId } = making.caller;
  const own = visibleAssignee(making.caller);
  const refs = records.filter(({ change }) => change.kind === "prospect");
  const seen = new Map<number, { readonly version: number; readonly prospectId: number }>();
  const current = new Set(end === undefined && own !== undefined ? refs.map(({ id }) => id) : []);
  const recent = new Set<number>();
  const wanted = new Map<number, WantedRow>();
  for (const { id, version, change } of records) {
    const key = keyOf(companyId, change);
    if (key !== undefined) wanted.set(id, { ...key, version });
    if (!isAttached(change) || change.isDeleted) continue;
    const { prospectId } = change;
    const assignee = change.kind === "note" ? change.assignee : change.after;
    const isSeen = end !== undefined && !end.moved.has(prospectId) && (own === undefined || assignee === own);
    if (isSeen) seen.set(id, { version, prospectId });
    (isSeen ? recent : current).add(prospectId);
  }
  const [names, prospects, others] = await Promise.all([
    namesOf().then((known) => namesWith(making, known, records)),
    rowsAtLeast(table, companyId, namesVersion, { refs, current, recent }),
    rowsAt(table, wanted),
  ]);
  const late = new Set<number>();
  for (const [id, { version, prospectId }] of seen) {
    const row = others.get(id);
    const isNew = Date.parse(row?.updatedAt ?? "") > (end?.since ?? 0) + CLOCK_SKEW_MS;
    const prospect = prospects.get(prospectId);
    const isVisible = prospect && hiddenBecause(making.caller, prospect) === undefined;
    if (row?.version === version && isNew && isVisible) continue;
    if (row !== undefined) late.add(prospectId);
  }
  const parents = late.size === 0 ? [] : await rowsAtLeast(table, companyId, namesVersion, { current: late });
  return { making, names, prospects: new Map([...prospects, ...parents]), others };
}

const isAttached = (change: Change): change is NoteChange | AppointmentChange =>
  change.kind === "note" || change.kind === "appointment";

/** Maximum reads of rows or of the dictionary. A read may lack a part of a transaction whose entry in the log is already visible. */
const TRIES = 5;

/** Returns a dictionary with the selected statuses, tags and users in their versions or later ones. */
async function namesWith(
  { context, caller }: Making,
  known: Dictionary,
  records: readonly Selected[],
): Promise<Dictionary> {
  let names = known;
  for (let tries = 1; tries <= TRIES; tries++) {
    const { statuses, tags, users } = names;
    const isBehind = records.some(({ id, version, change: { kind, isDeleted } }) => {
      if (isDeleted || !(kind === "status" || kind === "tag" || kind === "user")) return false;
      const found = statuses.get(id) ?? tags.get(id) ?? users.get(id);
      // A tag that is missing in the second read was deleted after this change. The client gets its deletion from the log.
      return found === undefined ? kind !== "tag" || tries === 1 : found.version < version;
    });
    if (!isBehind) break;
    names = await freshDictionary(context, caller.companyId);
  }
  return names;
}

interface WantedRow extends keys.Key {
  /** The row must be read in this version or a later one. */
  readonly version: number;
}

/** Undefined for a deleted record, and for other kinds than notes, appointments and territories. */
function keyOf(companyId: number, change: Change): keys.Key | undefined {
  if (change.isDeleted) return undefined;
  if (change.kind === "appointment") return attachedKeys.appointment(companyId, change.prospectId, change.id);
  if (!("createdAt" in change) || change.createdAt === undefined) return undefined;
  const createdAt = new Date(change.createdAt).toISOString();
  if (change.kind === "note") return attachedKeys.note(companyId, change.prospectId, createdAt, change.id);
  return keys.territory(companyId, createdAt, change.id);
}

/** Reads with eventual consistency, and then the rows that are missing or too old with strong consistency, at most `TRIES` times. */
async function rowsAt(table: Reads, wanted: ReadonlyMap<number, WantedRow>): Promise<ReadonlyMap<number, OtherRow>> {
  const found = new Map<number, OtherRow>();
  const read = async (rows: Iterable<readonly [number, WantedRow]>, consistency: Consistency): Promise<void> => {
    const single = [...rows].map(([, { pk, sk }]) => ({ pk, sk }));
    for (const item of await table.batchGet(single, { consistency })) {
      const row = OtherRow.parse(item);
      found.set(row.id, row);
    }
  };
  await read(wanted, "eventual");
  for (let tries = 1; tries <= TRIES; tries++) {
    const behind = [...wanted].filter(([id, { version }]) => (found.get(id)?.version ?? 0) < version);
    if (behind.length === 0) break;
    if (tries > 1) await sleep(10 * tries);
    await read(behind, "strong");
    // A row that is still missing after two strong reads was deleted meanwhile.
    if (tries > 1 && behind.every(([id]) => !found.has(id))) break;
  }
  return found;
}
