/** The upcoming appointments of a prospect that its row keeps, so that a page of prospects needs no look at appointments. */

import { iso } from "#shared/clock.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { type AgendaEntry, readAgenda, soonestEntryFirst } from "#shared/prospects/agenda.ts";
import { StoredAppointment } from "#shared/prospects/appointment-schema.ts";
import { soonestFirst } from "#shared/prospects/present.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

/** Enough for the appointments that pass before another one is written. */
const KEPT = 3;
/** Together: a page pays for what the rows hold, and an appointment may have 10 000 characters of notes. */
const KEPT_BYTES = 2_000;

export type UpcomingFields = Pick<StoredProspect, "upcoming" | "moreUpcomingUntil">;

export const nothingUpcoming: UpcomingFields = { upcoming: [], moreUpcomingUntil: null };

/** One that is made has no `before`, one that is deleted no `after`. */
export interface AppointmentChange {
  readonly before: StoredAppointment | undefined;
  readonly after: StoredAppointment | undefined;
}

/** What the row keeps of all the prospect's appointments: the soonest that fit, without a gap. */
export function upcomingFields(appointments: readonly StoredAppointment[], nowMs: number): UpcomingFields {
  return fitting(
    appointments.filter((appointment) => isUpcoming(appointment, nowMs)),
    null,
  );
}

/**
 * What the row keeps after a change, told by the row and the change alone: what is not kept comes after the last that is. Where
 * that leaves nothing although there may be more, the agenda, as it is after the change, says which are the soonest.
 */
export async function upcomingAfter(
  table: Table,
  prospect: StoredProspect,
  change: AppointmentChange,
  agenda: readonly AgendaEntry[],
  nowMs: number,
): Promise<UpcomingFields> {
  const fields = changedFields(prospect, change, nowMs);
  if (fields.upcoming.length > 0 || fields.moreUpcomingUntil === null) return fields;
  const ahead = entriesAhead(agenda, nowMs);
  const soonest = await readSome(table, prospect, ahead.slice(0, KEPT), change.after);
  const last = ahead.length > soonest.length ? ahead.at(-1) : undefined;
  return fitting(soonest, last === undefined ? null : iso(last.startMs));
}

const entriesAhead = (agenda: readonly AgendaEntry[], nowMs: number): AgendaEntry[] =>
  agenda.filter(({ isScheduled, startMs }) => isScheduled && startMs >= nowMs).sort(soonestEntryFirst);

/** The appointments of these entries; `changed` is not written yet. */
async function readSome(
  table: Table,
  { companyId, id: prospectId }: StoredProspect,
  entries: readonly AgendaEntry[],
  changed: StoredAppointment | undefined,
): Promise<StoredAppointment[]> {
  const others = entries.filter(({ id }) => id !== changed?.id);
  const items = await table.batchGet(others.map(({ id }) => besideKeys.appointment(companyId, prospectId, id)));
  const found = items.map((item) => StoredAppointment.parse(item));
  return changed !== undefined && others.length < entries.length ? [...found, changed] : found;
}

function changedFields(
  { upcoming, moreUpcomingUntil }: UpcomingFields,
  { before, after }: AppointmentChange,
  nowMs: number,
): UpcomingFields {
  const last = upcoming.at(-1);
  const left = upcoming.filter((appointment) => appointment.id !== before?.id && isUpcoming(appointment, nowMs));
  const more = moreUpcomingUntil !== null && Date.parse(moreUpcomingUntil) >= nowMs ? moreUpcomingUntil : null;
  if (after === undefined || !isUpcoming(after, nowMs)) return { upcoming: left, moreUpcomingUntil: more };
  const isBeyond = more !== null && (last === undefined || soonestFirst(after, last) > 0);
  return isBeyond
    ? { upcoming: left, moreUpcomingUntil: latest(more, after.startAt) }
    : fitting([...left, after], more);
}

/** `more`: what else there is, all of it later than these. */
function fitting(appointments: readonly StoredAppointment[], more: string | null): UpcomingFields {
  const all = appointments.toSorted(soonestFirst);
  const upcoming: StoredAppointment[] = [];
  let bytes = 0;
  for (const appointment of all.slice(0, KEPT)) {
    bytes += Buffer.byteLength(JSON.stringify(appointment));
    if (bytes > KEPT_BYTES) break;
    upcoming.push(appointment);
  }
  const last = all.at(-1);
  const isCut = last !== undefined && upcoming.length < all.length;
  return { upcoming, moreUpcomingUntil: isCut ? latest(more, last.startAt) : more };
}

/** Timestamps of one form are in order as texts are. */
const latest = (a: string | null, b: string): string => (a === null || a < b ? b : a);

/** The soonest that is still to come. Asks the table only where the row keeps none that is and there may be more. */
export async function upcomingOf(
  table: Table,
  prospect: StoredProspect,
  nowMs: number,
): Promise<StoredAppointment | undefined> {
  const { upcoming, moreUpcomingUntil } = prospect;
  const kept = upcoming.find((appointment) => isUpcoming(appointment, nowMs));
  if (kept !== undefined || moreUpcomingUntil === null || Date.parse(moreUpcomingUntil) < nowMs) return kept;
  const agenda = await readAgenda(table, prospect);
  const [next] = entriesAhead(agenda ?? [], nowMs);
  const [found] = next === undefined ? [] : await readSome(table, prospect, [next], undefined);
  if (found !== undefined && isUpcoming(found, nowMs)) return found;
  if (agenda !== undefined && next === undefined) return undefined;
  // Somebody is writing appointments of this very prospect, or has given it to somebody else.
  const all = await readAppointments(table, prospect);
  return all.filter((appointment) => isUpcoming(appointment, nowMs)).sort(soonestFirst)[0];
}

async function readAppointments(table: Table, { companyId, id }: StoredProspect): Promise<StoredAppointment[]> {
  const found: StoredAppointment[] = [];
  for await (const item of table.query(besideKeys.appointments(companyId, id)))
    found.push(StoredAppointment.parse(item));
  return found;
}

const isUpcoming = ({ status, startAt, deletedAt }: StoredAppointment, nowMs: number): boolean =>
  deletedAt === undefined && status === "scheduled" && Date.parse(startAt) >= nowMs;
