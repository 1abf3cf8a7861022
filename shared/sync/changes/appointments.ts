/**
 * Reads all appointments that a caller may see, in a fixed order. For a caller who sees all prospects, they come from the company's
 * calendar. For any other caller, they come from the agendas of the prospects that are assigned to this caller.
 */
import { visibleAssignee } from "#shared/auth/caller.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { padded } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { StoredAppointment } from "#shared/prospects/stored.ts";
import { type Agendas, agendaEntries, monthOf, QUERIES_AT_ONCE } from "#shared/sync/changes/agendas.ts";
import type { StageReads } from "#shared/sync/changes/stage-reads.ts";

type Order = readonly [number, number, number];

interface Ordered {
  readonly row: StoredAppointment;
  readonly order: Order;
}

interface Part {
  readonly rows: readonly Ordered[];
  readonly isEnd: boolean;
}

export async function appointmentsInOrder(reads: StageReads, after: Order | undefined, limit: number): Promise<Part> {
  const { context, caller } = reads.making;
  const own = visibleAssignee(caller);
  if (own !== undefined) return ofAgendas(context.table, caller.companyId, own, after, limit);
  return ofCalendar(context.table, caller.companyId, () => reads.agendas(), after, limit);
}

async function ofAgendas(
  table: Reads,
  companyId: number,
  userId: number,
  after: Order | undefined,
  limit: number,
): Promise<Part> {
  const entries = await agendaEntries(table, companyId, userId);
  const [prospectId = 0, id = 0] = after ?? [];
  const left = entries
    .filter((entry) => entry.prospectId > prospectId || (entry.prospectId === prospectId && entry.id > id))
    .sort((a, b) => a.prospectId - b.prospectId || a.id - b.id);
  const some = left.slice(0, limit);
  const items = await table.batchGet(
    some.map((entry) => attachedKeys.appointment(companyId, entry.prospectId, entry.id)),
  );
  const rows = items
    .map((item) => StoredAppointment.parse(item))
    .map((row): Ordered => ({ row, order: [row.prospectId, row.id, 0] }))
    .sort((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1]);
  return { rows, isEnd: left.length <= limit };
}

const monthName = (month: number): string =>
  `${String(Math.floor(month / 12)).padStart(4, "0")}-${String((month % 12) + 1).padStart(2, "0")}`;

const beginOf = (month: number): number => Date.parse(`${monthName(month)}-01T00:00:00.000Z`);

/** In milliseconds since 1970. */
export const monthEnd = (epochMs: number): number => beginOf(monthOf(epochMs) + 1);

/** A place in the calendar: after this appointment, or at this time if the id is 0. */
interface Position {
  readonly at: number;
  readonly id: number;
}

/**
 * Reads appointments by start and then by id. The agendas say which months have appointments. A later page does not need them if it ends
 * within its first month. An `Order` contains the start of the appointment, its id, and the last month that had an appointment when the
 * first page was read. No page reads beyond that month.
 */
async function ofCalendar(
  table: Reads,
  companyId: number,
  agendas: () => Promise<Agendas>,
  after: Order | undefined,
  limit: number,
): Promise<Part> {
  const [first] = after === undefined ? (await agendas()).months : [];
  const last = after?.[2] ?? (await agendas()).months.at(-1)?.[0];
  if (last === undefined) return { rows: [], isEnd: true };
  const rows: Ordered[] = [];
  const readMonth = async (position: Position): Promise<StoredAppointment[]> => {
    const found: StoredAppointment[] = [];
    const room = limit - rows.length;
    for await (const row of calendarRows(table, companyId, position, monthEnd(position.at), room)) found.push(row);
    return found;
  };
  let group: readonly Position[] = [after === undefined ? startOf(first?.[0] ?? last) : { at: after[0], id: after[1] }];
  for (;;) {
    for (const found of await Promise.all(group.map(readMonth))) {
      rows.push(...found.map((row): Ordered => ({ row, order: [Date.parse(row.startAt), row.id, last] })));
    }
    if (rows.length >= limit) return { rows: rows.slice(0, limit), isEnd: false };
    const done = monthOf(group.at(-1)?.at ?? Number.POSITIVE_INFINITY);
    const left = done < last ? (await agendas()).months.filter(([month]) => month > done && month <= last) : [];
    if (left.length === 0) return { rows, isEnd: true };
    group = fitting(left, limit - rows.length).map(([month]) => startOf(month));
  }
}

const startOf = (month: number): Position => ({ at: beginOf(month), id: 0 });

/** Returns at least the first month. */
function fitting(months: Agendas["months"], room: number): Agendas["months"] {
  let [end, left] = [0, room];
  for (const [, count] of months.slice(0, QUERIES_AT_ONCE)) {
    left -= count;
    if (left < 0) break;
    end++;
  }
  return months.slice(0, Math.max(1, end));
}

/** Ends at `to` or at the end of the month of `at`, whichever is earlier. */
export async function* calendarRows(
  table: Reads,
  companyId: number,
  { at, id }: Position,
  to: number,
  limit: number,
): AsyncGenerator<StoredAppointment, void, undefined> {
  const month = monthName(monthOf(at));
  const first = new Date(at).toISOString();
  const end = to > at && monthOf(to) === monthOf(at) ? new Date(to).toISOString() : `${month}~`;
  const { pk } = attachedKeys.calendar(companyId, month, first, end);
  const from = id === 0 ? first : `${first}#${padded(id)}!`;
  for await (const item of table.query({ pk, from, upTo: end, limit })) {
    yield StoredAppointment.parse({ ...item, type: "appointment" });
  }
}
