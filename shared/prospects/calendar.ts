/** Lists the appointments of a company in a time range, of prospects that the caller may see. */
import * as z from "zod/mini";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { DAY_MS, iso } from "#shared/clock.ts";
import type { ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { explain } from "#shared/documentation.ts";
import { invalid } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { agendaEntries, appointmentsAt } from "#shared/prospects/agenda.ts";
import { Assignees, dateBound } from "#shared/prospects/filter.ts";
import { presentAppointment, soonestFirst } from "#shared/prospects/present.ts";
import { isVisible } from "#shared/prospects/read.ts";
import type { Appointment } from "#shared/prospects/schema.ts";
import { StoredAppointment, storedProspect } from "#shared/prospects/stored.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";

export const CalendarQuery = z.object({
  from: z.optional(dateBound("start")),
  to: z.optional(dateBound("end")),
  assignedToUserId: z.optional(Assignees),
});
export type CalendarQuery = z.output<typeof CalendarQuery>;

/* @__PURE__ */ explain([CalendarQuery], () => ({
  fields: {
    from: { description: "Starts at or after: an ISO 8601 time or date. Default: now.", example: "2026-06-01" },
    to: {
      description: `Starts at or before: an ISO 8601 time, or a date for the end of that UTC day. Default: ${limits.calendarDays} days after \`from\`.`,
      example: "2026-06-07",
    },
    assignedToUserId: { description: "Ids of assignees and `unassigned`, comma-separated.", example: "7,unassigned" },
  },
}));

/** A range is cut to these times, because the years in keys of calendar rows have four digits. */
const EARLIEST = Date.parse("0000-01-01T00:00:00.000Z");
const LATEST = Date.parse("9999-12-31T23:59:59.999Z");

/** In milliseconds since 1970. Both ends are included. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Maximum number of appointments in memory. */
const BATCH = 100;

/** Returns appointments, soonest first: from the company's calendar, or from the agendas if the caller sees only assigned prospects. */
export async function listAppointments(
  context: ReadContext,
  caller: Caller,
  query: CalendarQuery,
): Promise<AsyncIterable<Appointment>> {
  const range = rangeOf(query, context.clock.now());
  const own = visibleAssignee(caller);
  const [dictionary, agenda] = await Promise.all([
    currentDictionary(context, caller.companyId),
    own === undefined ? [] : readAgendas(context, caller.companyId, own, range),
  ]);
  const found =
    own === undefined ? ofCompany(context, caller, range) : ofAgendas(context, caller.companyId, agenda, range);
  return presented(found, query, dictionary);
}

async function* presented(
  found: AsyncIterable<StoredAppointment>,
  { assignedToUserId: wanted = [] }: CalendarQuery,
  dictionary: Dictionary,
): AsyncGenerator<Appointment> {
  for await (const entry of found) {
    const isWanted = wanted.length === 0 || wanted.includes(entry.assignedToUserId ?? "unassigned");
    if (isWanted) yield presentAppointment(entry, dictionary);
  }
}

type Entries = Awaited<ReturnType<typeof agendaEntries>>;

async function readAgendas(
  { table }: ReadContext,
  companyId: number,
  userId: number,
  { from, to }: Range,
): Promise<Entries> {
  if (from > to) return [];
  const entries = await agendaEntries(table, companyId, userId, iso(from));
  return entries
    .filter(({ startMs }) => startMs >= from && startMs <= to)
    .sort((a, b) => a.startMs - b.startMs || a.id - b.id);
}

async function* ofAgendas(
  { table }: ReadContext,
  companyId: number,
  entries: Entries,
  { from, to }: Range,
): AsyncGenerator<StoredAppointment> {
  const isWithin = ({ startAt }: StoredAppointment): boolean => startAt >= iso(from) && startAt <= iso(to);
  for (let at = 0; at < entries.length; at += BATCH) {
    const some = await appointmentsAt(table, companyId, entries.slice(at, at + BATCH));
    // The time of an appointment may have changed since the agenda was read.
    yield* some.filter(isWithin).sort(soonestFirst);
  }
}

/** The calendar also has appointments of deleted prospects, which are left out. */
async function* ofCompany(context: ReadContext, caller: Caller, range: Range): AsyncGenerator<StoredAppointment> {
  for await (const some of batches(readCalendar(context, caller.companyId, range))) {
    const ids = new Set(some.map(({ prospectId }) => prospectId));
    const items = await context.table.batchGet([...ids].map((id) => keys.prospect(caller.companyId, id)));
    const prospects = items.map(storedProspect).filter((prospect) => isVisible(caller, prospect));
    const visible = new Set(prospects.map(({ id }) => id));
    yield* some.filter(({ prospectId }) => visible.has(prospectId));
  }
}

async function* batches<T>(entries: AsyncIterable<T>): AsyncGenerator<T[]> {
  let some: T[] = [];
  for await (const entry of entries) {
    some.push(entry);
    if (some.length < BATCH) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}

function rangeOf(query: CalendarQuery, now: number): Range {
  const { from = now } = query;
  const { to = from + limits.calendarDays * DAY_MS } = query;
  if (to - from > limits.calendarDaysMax * DAY_MS) {
    const message = `must lie at most ${limits.calendarDaysMax} days after from`;
    throw invalid("The range is too long.", { parameter: "to", code: "too_big", message });
  }
  return { from: Math.max(from, EARLIEST), to: Math.min(to, LATEST) };
}

async function* readCalendar(
  { table }: ReadContext,
  companyId: number,
  { from, to }: Range,
): AsyncGenerator<StoredAppointment> {
  for (let at = from; at <= to; at = monthEnd(at)) {
    yield* calendarRows(table, companyId, { at, id: 0 }, to);
  }
}

/** A place in the calendar: after the appointment with this start and id, or from `at` on if `id` is 0. */
export interface Moment {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly id: number;
}

/** Yields the appointments from a place up to `to`, but at most to the end of the month of `at`. */
export async function* calendarRows(
  table: Reads,
  companyId: number,
  { at, id }: Moment,
  to: number,
  limit?: number,
): AsyncGenerator<StoredAppointment, void, undefined> {
  const first = iso(at);
  const month = first.slice(0, "YYYY-MM".length);
  const end = monthOf(to) === monthOf(at) ? iso(to) : `${month}~`;
  const range = attachedKeys.calendar(companyId, month, id === 0 ? first : `${first}#${keys.padded(id)}!`, end);
  for await (const item of table.query({ ...range, limit })) {
    yield StoredAppointment.parse({ ...item, type: "appointment" });
  }
}

/** Returns the number of months since January of the year 0, in UTC. */
export function monthOf(epochMs: number): number {
  const date = new Date(epochMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** The beginning of a month, in milliseconds since 1970. `month` is a result of `monthOf`. */
export const monthBegin = (month: number): number => new Date(0).setUTCFullYear(0, month, 1);

/** The beginning of the next month, in milliseconds since 1970. */
export const monthEnd = (epochMs: number): number => monthBegin(monthOf(epochMs) + 1);
