/** Reads many records, one type after the other. A page may end after any record, and the next page continues there. */
import { matchesAfter } from "#shared/company-index/search/page.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { appointmentsInOrder } from "#shared/sync/changes/appointments.ts";
import { notesAfter, notesOf } from "#shared/sync/changes/attached.ts";
import type { Place } from "#shared/sync/changes/cursor.ts";
import {
  appointmentItem,
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
import type { ChangeType } from "#shared/sync/changes/schema.ts";
import type { StageReads, Where } from "#shared/sync/changes/stage-reads.ts";
import { territoriesAfter } from "#shared/territories/territories.ts";

type Order = readonly [number, number, number];

export interface Stage {
  readonly type: ChangeType;
  /** Only prospects that meet these criteria. */
  readonly where?: Where;
  /** Only prospects with ids from `from` to `to`, or notes of these prospects. */
  readonly range?: { readonly from: number; readonly to: number };
  /** Only notes and appointments that this user has created or is assigned to, or prospects with such an appointment. */
  readonly showing?: number;
  /** Only the status, tag or user with this id. */
  readonly only?: { readonly id: number; readonly version: number; readonly isDeleted: boolean };
}

/**
 * Returns the place after the last record, or undefined if all stages have ended. The page may have room left although the stages have not
 * ended, because one request reads a limited number of rows.
 */
export async function readStages(
  reads: StageReads,
  stages: readonly Stage[],
  from: Place,
  page: PageItems,
): Promise<Place | undefined> {
  let { stage: at, after } = from;
  for (let done = 0; page.room > 0 && done < MOST_READS; done++) {
    const stage = stages[at];
    if (stage === undefined) break;
    const { entries, isEnd } = await readers[stage.type](reads, stage, after, page.room);
    for (const { item, order } of entries) {
      if (item !== undefined && !page.add(item)) return { stage: at, after };
      after = order;
    }
    if (isEnd) {
      at++;
      after = undefined;
      continue;
    }
    const showsMost = stage.type === "prospects" && stage.showing === undefined;
    if (!showsMost) break;
  }
  return at < stages.length ? { stage: at, after } : undefined;
}

/** Maximum number of reads of one page. 1 000 prospects need two reads, and each of the six other types needs one. */
export const MOST_READS = 8;

interface Entry {
  readonly order: Order;
  /** Undefined for a record that was read, but does not belong to the stage. */
  readonly item: TimedItem | undefined;
}

interface Part {
  readonly entries: readonly Entry[];
  /** True if the stage has no records after these entries. */
  readonly isEnd: boolean;
}

type Reader = (reads: StageReads, stage: Stage, after: Order | undefined, limit: number) => Promise<Part>;

const isShown = ({ item: { op } }: TimedItem): boolean => op === "upsert";

/**
 * Reads by id, so a prospect that the caller may see during the whole snapshot is in exactly one page. Any other prospect has changed since
 * the snapshot began, so the changes after the snapshot contain it.
 */
const readProspects: Reader = async (reads, stage, after, limit) => {
  if (stage.showing !== undefined) return readProspectsShowing(reads, stage, after, limit);
  const { making } = reads;
  const { names, matches } = await reads.found(stage.where);
  const { from, to } = stage.range ?? { from: 1, to: Number.POSITIVE_INFINITY };
  const { table } = making.context;
  const { companyId } = making.caller;
  const most = Math.min(limit, PROSPECTS_AT_ONCE);
  const refs = matchesAfter(matches, Math.max(from - 1, after?.[0] ?? 0), to, most);
  const rows = await rowsAtLeast(table, companyId, refs, names.version);
  const entries = await Promise.all(
    refs.map(async ({ id }): Promise<Entry> => {
      const row = rows.get(id);
      const item = row === undefined ? undefined : await prospectItem(making, row, names);
      return { order: [id, 0, 0], item: item !== undefined && isShown(item) ? item : undefined };
    }),
  );
  return { entries, isEnd: refs.length < most };
};

/** Reads the prospects with an appointment that the user `showing` has created or is assigned to. */
async function readProspectsShowing(
  reads: StageReads,
  { showing }: Stage,
  after: Order | undefined,
  limit: number,
): Promise<Part> {
  const { making } = reads;
  const { context, caller } = making;
  const { names } = await reads.found();
  const { rows: found, isEnd } = await appointmentsInOrder(reads, after, limit);
  const shown = found.filter(({ row }) => shows(row, showing));
  const ids = new Set(shown.map(({ row }) => row.prospectId));
  const rows = await rowsAtLeast(context.table, caller.companyId, [], names.version, ids);
  const entries: Entry[] = [];
  for (const { row, order } of found) {
    const prospect = shows(row, showing) ? rows.get(row.prospectId) : undefined;
    const item = prospect === undefined ? undefined : await prospectItem(making, prospect, names);
    entries.push({ order, item: item !== undefined && isShown(item) ? item : undefined });
  }
  return { entries, isEnd };
}

interface Persons {
  readonly createdBy: number | null;
  readonly assignedToUserId?: number | null;
}

const shows = ({ createdBy, assignedToUserId }: Persons, userId: number | undefined): boolean =>
  userId === undefined || createdBy === userId || assignedToUserId === userId;

const readAppointments: Reader = async (reads, { showing }, after, limit) => {
  const { names } = await reads.found();
  const visible = await reads.visible();
  const { rows, isEnd } = await appointmentsInOrder(reads, after, limit);
  const entries = rows.map(({ row, order }): Entry => {
    const version = visible.versionOf(row.prospectId);
    const isWanted = version > 0 && shows(row, showing);
    return { order, item: isWanted ? appointmentItem(row, version, names) : undefined };
  });
  return { entries, isEnd };
};

const NOTES_AT_ONCE = 250;

/** The search index contains the ids of all notes, so no row is read for a prospect without notes. */
const readNotes: Reader = async (reads, { range, showing }, after, limit) => {
  const { context, caller } = reads.making;
  const { companyId } = caller;
  const { names } = await reads.found();
  const notes = await reads.notes();
  const visible = await reads.visible();
  const from = Math.max(range?.from ?? 1, after?.[0] ?? 1);
  const begun = after !== undefined && after[1] > 0 ? after : undefined;
  const most = Math.min(limit, NOTES_AT_ONCE);
  const prospects = [...notes.byProspect(from, range?.to ?? Number.POSITIVE_INFINITY, most)];
  const some: typeof prospects = [];
  for (let [at, count] = [0, 0]; at < prospects.length && count < most; at++) {
    const prospect = prospects[at];
    if (prospect === undefined) break;
    some.push(prospect);
    count += prospect[1].length;
  }
  const read = await notesOf(
    context.table,
    companyId,
    some.filter(([id]) => id !== begun?.[0]),
  );
  const entries: Entry[] = [];
  const version = (id: number): number => visible.versionOf(id);
  for (const [id] of some) {
    const known = read.get(id);
    const { rows, hasMore } =
      known === undefined
        ? await notesAfter(context.table, companyId, id, id === begun?.[0] ? begun.slice(1) : [], most)
        : { rows: known, hasMore: false };
    for (const row of rows) {
      const order = [id, Date.parse(row.createdAt), row.id] as const;
      entries.push({ order, item: shows(row, showing) ? noteItem(row, version(id), names) : undefined });
    }
    if (hasMore) return { entries, isEnd: false };
    // Without this entry, a prospect whose notes fill a page exactly would be selected again by every following page.
    entries.push({ order: [id + 1, 0, 0], item: undefined });
  }
  return { entries, isEnd: some.length === prospects.length && prospects.length < most };
};

const readTerritories: Reader = async ({ making: { context, caller } }, _, after, limit) => {
  const { rows, isEnd } = await territoriesAfter(context.table, caller.companyId, after, limit);
  const entries = rows.map(
    (row): Entry => ({ order: [Date.parse(row.createdAt), row.id, 0], item: territoryItem(row) }),
  );
  return { entries, isEnd };
};

function named<Row extends { readonly id: number }>(
  select: (names: Dictionary) => ReadonlyMap<number, Row>,
  itemOf: (row: Row, nowMs: number) => TimedItem,
): Reader {
  return async (reads, { type, only }, after, limit) => {
    if (only?.isDeleted === true) {
      const item = { item: removal(type, only.id, shownVersion(only.version), "deleted") };
      return { entries: [{ order: [only.id, 0, 0], item }], isEnd: true };
    }
    const { names } = await reads.found();
    const rows = [...select(names).values()]
      .filter(({ id }) => id > (after?.[0] ?? 0) && (only === undefined || id === only.id))
      .sort((a, b) => a.id - b.id);
    const entries = rows
      .slice(0, limit)
      .map((row): Entry => ({ order: [row.id, 0, 0], item: itemOf(row, reads.making.nowMs) }));
    return { entries, isEnd: rows.length <= limit };
  };
}

const readers: Readonly<Record<ChangeType, Reader>> = {
  prospects: readProspects,
  notes: readNotes,
  appointments: readAppointments,
  territories: readTerritories,
  statuses: named(({ statuses }) => statuses, statusItem),
  tags: named(({ tags }) => tags, tagItem),
  users: named(({ users }) => users, userItem),
};
