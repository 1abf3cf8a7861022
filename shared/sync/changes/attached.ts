/** Reads notes and appointments for the feed of changes: those of one prospect, or all that a caller may see. */
import { mapConcurrently } from "#shared/all-ended.ts";
import { at } from "#shared/at.ts";
import type { Change } from "#shared/company-index/change-log.ts";
import { readLog } from "#shared/company-index/read/chunks.ts";
import type { NewestVersions } from "#shared/company-index/versions.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import { blockOf, type Key } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { agendaEntries, appointmentsAt, readAppointments } from "#shared/prospects/agenda.ts";
import { calendarRows, type Moment, monthBegin, monthEnd, monthOf } from "#shared/prospects/calendar.ts";
import { StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";
import type { ChangeKey, Order } from "#shared/sync/changes/cursor.ts";
import type { AttachedRow } from "#shared/sync/changes/items.ts";

export interface Ordered<Row extends AttachedRow> {
  readonly row: Row;
  readonly order: Order;
}

export interface Some<Row extends AttachedRow> {
  readonly rows: readonly Ordered<Row>[];
  readonly hasMore: boolean;
}

const noteKey = (companyId: number, prospectId: number, createdAt: number, id: number): Key =>
  attachedKeys.note(companyId, prospectId, new Date(createdAt).toISOString(), id);

function orderedNote(item: Item): Ordered<StoredNote> {
  const row = StoredNote.parse(item);
  return { row, order: [Date.parse(row.createdAt), row.id, 0] };
}

function orderedAppointment(item: Item): Ordered<StoredAppointment> {
  const row = StoredAppointment.parse(item);
  return { row, order: [row.id, 0, 0] };
}

interface AttachedPage {
  readonly type: "notes" | "appointments";
  readonly prospectId: number;
  readonly after: Order | undefined;
  readonly limit: number;
}

/** Reads the notes or appointments of one prospect that follow `after`. Notes are sorted by creation time, appointments by id. */
export async function attachedAfter(
  table: Reads,
  companyId: number,
  { type, prospectId, after, limit }: AttachedPage,
): Promise<Some<AttachedRow>> {
  const { pk, begins } = attachedKeys.appointments(companyId, prospectId);
  const [range, keyOf, ordered] =
    type === "notes"
      ? [attachedKeys.notes(companyId, prospectId), noteKey, orderedNote]
      : [{ pk, from: begins, upTo: `${begins}~` }, attachedKeys.appointment, orderedAppointment];
  // With `!`, the range begins directly after the sort key of the last record.
  const from = after === undefined ? range.from : `${keyOf(companyId, prospectId, after[0], after[1]).sk}!`;
  const rows: Ordered<AttachedRow>[] = [];
  for await (const item of table.query({ ...range, from, limit: limit + 1 })) rows.push(ordered(item));
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
}

/** The notes of each prospect according to the company index. */
type KnownNotes = readonly (readonly [id: number, notes: readonly ChangeKey[]])[];

/** If at least this many prospects of one partition are wanted, one Query is cheaper than a Query for each prospect. */
const WORTH_A_QUERY = 4;

/** Leaves out a prospect if one of its notes is missing or older than in the company index. The caller must then use `attachedAfter`. */
export async function notesOf(
  table: Reads,
  companyId: number,
  prospects: KnownNotes,
): Promise<Map<number, Ordered<StoredNote>[]>> {
  const found = new Map(prospects.map(([id]): [number, Ordered<StoredNote>[]] => [id, []]));
  const readSpan = async (own: KnownNotes): Promise<void> => {
    const range = attachedKeys.notes(companyId, ...endsOf(own));
    const limit = 2 * own.reduce((sum, [, notes]) => sum + notes.length, 0);
    for await (const item of table.query({ ...range, limit, consistency: "eventual" })) {
      const note = orderedNote(item);
      found.get(note.row.prospectId)?.push(note);
    }
  };
  const spans = [...Map.groupBy(prospects, ([id]) => blockOf(id)).values()].flatMap((own) => {
    const [first, last] = endsOf(own);
    return own.length >= WORTH_A_QUERY && last - first < 3 * own.length ? [own] : own.map((one) => [one]);
  });
  await Promise.all(spans.map(readSpan));
  for (const [id, notes] of prospects) {
    const versions = new Map(found.get(id)?.map(({ row }) => [row.id, row.version]));
    if (notes.some((note) => (versions.get(note.id) ?? 0) < note.version)) found.delete(id);
  }
  return found;
}

const endsOf = (prospects: KnownNotes): [first: number, last: number] => [
  at(prospects, 0)[0],
  at(prospects, prospects.length - 1)[0],
];

const QUERIES_AT_ONCE = 25;

/** The months (see `monthOf`) in which appointments begin, in order. */
export type Months = readonly (readonly [month: number, count: number])[];

/**
 * Counts the company's appointments by month, from the agendas of all users (`userIds`) and of unassigned prospects. The reads may miss an
 * agenda that a concurrent change of the assignee moves. Therefore the change log after `headVersion`, a version from before this call, is
 * searched for reassigned prospects, and the rows of their appointments are read. A deleted prospect (not `visible`) has no agenda, so its
 * appointments do not count.
 */
export async function appointmentMonths(
  table: Reads,
  companyId: number,
  userIds: readonly number[],
  headVersion: number,
  visible: NewestVersions,
): Promise<Months> {
  const inMonths = new Map<number, number>();
  const seen = new Set<number>();
  await mapConcurrently([null, ...userIds], QUERIES_AT_ONCE, async (user) => {
    for (const { id, startMs, prospectId } of await agendaEntries(table, companyId, user)) {
      inMonths.set(id, monthOf(startMs));
      seen.add(prospectId);
    }
  });
  for (const prospectId of await reassignedSince(table, companyId, headVersion)) {
    if (seen.has(prospectId) || visible.versionOf(prospectId) === 0) continue;
    for (const { id, startAt } of await readAppointments(table, { companyId, id: prospectId })) {
      inMonths.set(id, monthOf(Date.parse(startAt)));
    }
  }
  const months = Map.groupBy(inMonths.values(), (month) => month);
  return [...months].map(([month, own]) => [month, own.length] as const).sort(([a], [b]) => a - b);
}

async function reassignedSince(table: Reads, companyId: number, headVersion: number): Promise<Set<number>> {
  const { chunks, unflushed } = await readLog(table, companyId, headVersion, 1);
  const changes = [...unflushed.changes];
  for await (const chunk of chunks) changes.push(...chunk.changes);
  const isReassigned = (change: Change): boolean =>
    change.kind === "prospect" && change.version > 1 && change.before !== change.after;
  return new Set(changes.filter(isReassigned).map(({ id }) => id));
}

/** Reads the appointments of the user's prospects, sorted by prospect and then by id. */
export async function appointmentsOfUser(
  table: Reads,
  companyId: number,
  userId: number,
  after: Order | undefined,
  limit: number,
): Promise<Some<StoredAppointment>> {
  const [prospectId = 0, id = 0] = after ?? [];
  const left = (await agendaEntries(table, companyId, userId))
    .filter((entry) => entry.prospectId > prospectId || (entry.prospectId === prospectId && entry.id > id))
    .sort((a, b) => a.prospectId - b.prospectId || a.id - b.id);
  const some = left.slice(0, limit);
  const rows = (await appointmentsAt(table, companyId, some))
    .map((row): Ordered<StoredAppointment> => ({ row, order: [row.prospectId, row.id, 0] }))
    .sort((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1]);
  return { rows, hasMore: left.length > limit };
}

/**
 * Reads a page of the company's appointments, sorted by start and then by id. A later page calls `months`, which reads all agendas, only if
 * it continues into another month. The third number of an `Order` is the last month that had an appointment at the time of the first page.
 * No page reads beyond this month.
 */
export async function appointmentsOfCompany(
  table: Reads,
  companyId: number,
  months: () => Promise<Months>,
  after: Order | undefined,
  limit: number,
): Promise<Some<StoredAppointment>> {
  const all = after === undefined ? await months() : [];
  const last = after?.[2] ?? all.at(-1)?.[0];
  if (last === undefined) return { rows: [], hasMore: false };
  const rows: Ordered<StoredAppointment>[] = [];
  const readMonth = (from: Moment): Promise<StoredAppointment[]> =>
    Array.fromAsync(calendarRows(table, companyId, from, monthEnd(from.at), limit - rows.length));
  let group = after === undefined ? fitting(all, limit) : [{ at: after[0], id: after[1] }];
  for (;;) {
    for (const row of (await Promise.all(group.map(readMonth))).flat()) {
      rows.push({ row, order: [Date.parse(row.startAt), row.id, last] });
    }
    if (rows.length >= limit) return { rows: rows.slice(0, limit), hasMore: true };
    const done = monthOf(group.at(-1)?.at ?? Number.POSITIVE_INFINITY);
    const left = done < last ? (await months()).filter(([month]) => month > done && month <= last) : [];
    if (left.length === 0) return { rows, hasMore: false };
    group = fitting(left, limit - rows.length);
  }
}

/** Returns the starts of the first months whose appointments fit into `room`: at least one, and at most `QUERIES_AT_ONCE` months. */
function fitting(months: Months, room: number): Moment[] {
  let [end, left] = [0, room];
  for (const [, count] of months.slice(0, QUERIES_AT_ONCE)) {
    left -= count;
    if (left < 0) break;
    end++;
  }
  return months.slice(0, Math.max(1, end)).map(([month]) => ({ at: monthBegin(month), id: 0 }));
}
