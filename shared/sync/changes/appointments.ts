/**
 * Reads all appointments that a caller may see, in a fixed order. For a caller who sees all prospects, they come from the company's
 * calendar, month by month. For any other caller, they come from the agendas of the prospects that are assigned to this caller. An agenda
 * is a row with the times of one prospect's appointments.
 */
import { visibleAssignee } from "#shared/auth/caller.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { padded } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { type AgendaEntry, agendaOf } from "#shared/prospects/agenda.ts";
import { StoredAppointment } from "#shared/prospects/stored.ts";
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
  const { names } = await reads.found();
  return ofCalendar(context.table, caller.companyId, [...names.users.keys()], after, limit);
}

interface PlacedEntry extends AgendaEntry {
  readonly prospectId: number;
}

/**
 * Reads the entries of all agendas of the prospects that are assigned to the user, or to nobody if `userId` is null. An agenda whose last
 * appointment starts before the time `from` is left out.
 */
export async function agendaEntries(
  table: Reads,
  companyId: number,
  userId: number | null,
  from = "0",
): Promise<PlacedEntry[]> {
  const found = new Map<number, PlacedEntry>();
  for await (const item of table.query(attachedKeys.agendas(companyId, userId, from))) {
    const { prospectId, entries } = agendaOf(item);
    for (const entry of entries) found.set(entry.id, { ...entry, prospectId });
  }
  return [...found.values()];
}

/** Maximum number of Queries that run at the same time. */
const AT_ONCE = 25;

/**
 * Counts the appointments of all prospects that are not deleted. Also returns the months in which these appointments begin, sorted.
 * `userIds` must contain all users of the company, because an agenda is stored under the prospect's assignee.
 */
export async function allAgendas(
  table: Reads,
  companyId: number,
  userIds: readonly number[],
): Promise<{ count: number; months: number[] }> {
  const months = new Set<number>();
  const assignees = [null, ...userIds];
  let count = 0;
  for (let done = 0; done < assignees.length; done += AT_ONCE) {
    const some = assignees.slice(done, done + AT_ONCE);
    for (const entries of await Promise.all(some.map((id) => agendaEntries(table, companyId, id)))) {
      count += entries.length;
      for (const { startMs } of entries) months.add(monthOf(startMs));
    }
  }
  return { count, months: [...months].sort((a, b) => a - b) };
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

/** Returns the number of the month in UTC, counted from January of the year 0. */
function monthOf(epochMs: number): number {
  const date = new Date(epochMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

const monthName = (month: number): string =>
  `${String(Math.floor(month / 12)).padStart(4, "0")}-${String((month % 12) + 1).padStart(2, "0")}`;

const beginOf = (month: number): number => Date.parse(`${monthName(month)}-01T00:00:00.000Z`);

/** Returns the beginning of the next month, in milliseconds since 1970. */
export const monthEnd = (epochMs: number): number => beginOf(monthOf(epochMs) + 1);

/**
 * Reads appointments from the calendar, sorted by start and then by id. The third number of an `Order` is the last month that has an
 * appointment. It is in the cursor, because finding it needs all agendas, which must not be read again for each page.
 */
async function ofCalendar(
  table: Reads,
  companyId: number,
  userIds: readonly number[],
  after: Order | undefined,
  limit: number,
): Promise<Part> {
  const months = async (): Promise<number[]> => (await allAgendas(table, companyId, userIds)).months;
  const known = after === undefined ? await months() : undefined;
  const last = after?.[2] ?? known?.at(-1);
  if (last === undefined) return { rows: [], isEnd: true };
  let [startMs, id] = after ?? [beginOf(known?.[0] ?? last), 0];
  for (;;) {
    const month = monthOf(startMs);
    if (month > last) return { rows: [], isEnd: true };
    const rows: Ordered[] = [];
    for await (const row of calendarRows(table, companyId, { at: startMs, id }, beginOf(month + 1), limit)) {
      rows.push({ row, order: [Date.parse(row.startAt), row.id, last] });
    }
    if (rows.length > 0) return { rows, isEnd: rows.length < limit && month === last };
    // The next month with appointments may be years away. The agendas tell which one it is, so the empty months between need no Query.
    const next = (await months()).find((one) => one > month);
    if (next === undefined || next > last) return { rows, isEnd: true };
    [startMs, id] = [beginOf(next), 0];
  }
}

/**
 * Yields the appointments that come after the start `at` and the id `id`, up to `to` or to the end of the month of `at`, whichever is
 * earlier.
 */
export async function* calendarRows(
  table: Reads,
  companyId: number,
  { at, id }: { readonly at: number; readonly id: number },
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
