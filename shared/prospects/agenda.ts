/**
 * The upcoming appointments of a prospect: copies of the soonest in the prospect's row, and the times of all in an agenda row.
 *
 * Lists read the copies. The agenda rows of one assignee share a partition: the calendar of a restricted user reads them, and a list
 * finds the next appointment there once the copies have passed. An agenda row changes only in a transaction that also writes the
 * prospect's row, under its version, so both always agree. The time in its key only grows: a query in key order that runs while the
 * row moves sees it at the old key, the new key, or both, but never misses it.
 */
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/item.ts";
import type { Table } from "#shared/db/table.ts";
import { soonestFirst } from "#shared/prospects/present.ts";
import { replaceProspect } from "#shared/prospects/rows.ts";
import { StoredAppointment, type StoredProspect } from "#shared/prospects/stored.ts";
import { Id } from "#shared/schema.ts";

export interface AgendaEntry {
  readonly id: number;
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  /** Neither completed nor cancelled. */
  readonly isScheduled: boolean;
}

export interface Agenda {
  readonly prospectId: number;
  readonly entries: readonly AgendaEntry[];
}

const Stored = z.object({ prospectId: Id, bytes: z.instanceof(Uint8Array) });

export const soonestEntryFirst = (a: AgendaEntry, b: AgendaEntry): number => a.startMs - b.startMs || a.id - b.id;

export function agendaOf(item: Item): Agenda {
  const { prospectId, bytes } = Stored.parse(item);
  const from = new ByteReader(bytes);
  const entries: AgendaEntry[] = [];
  while (!from.done) {
    entries.push({ id: from.integer(), startMs: from.signed(), isScheduled: from.integer() === 1 });
  }
  return { prospectId, entries };
}

/** Some ten bytes for each. */
function encoded(entries: readonly AgendaEntry[]): Uint8Array {
  const into = new ByteWriter();
  for (const { id, startMs, isScheduled } of entries) {
    into.integer(id);
    into.signed(startMs);
    into.integer(isScheduled ? 1 : 0);
  }
  return into.finish();
}

type Owner = Pick<StoredProspect, "companyId" | "id" | "assignedToUserId" | "agendaUntil">;

/** `undefined`: it has moved since the prospect's row was read. */
export async function readAgenda(table: Table, prospect: Owner): Promise<readonly AgendaEntry[] | undefined> {
  const { companyId, id, assignedToUserId, agendaUntil } = prospect;
  if (agendaUntil === undefined) return [];
  const item = await table.get(besideKeys.agenda(companyId, assignedToUserId, agendaUntil, id));
  return item === undefined ? undefined : agendaOf(item).entries;
}

/** With the appointment as it is after a change, or without it where it is deleted. */
export function agendaAfter(
  entries: readonly AgendaEntry[],
  id: number,
  after: Pick<StoredAppointment, "startAt" | "status"> | undefined,
): AgendaEntry[] {
  const others = entries.filter((entry) => entry.id !== id);
  if (after === undefined) return others;
  return [...others, { id, startMs: Date.parse(after.startAt), isScheduled: after.status === "scheduled" }];
}

/** Not before what the agenda was said to end with. Undefined where it is empty: then there is no agenda. */
export function agendaUntil(entries: readonly AgendaEntry[], before: string | undefined): string | undefined {
  if (entries.length === 0) return undefined;
  const last = entries.reduce((latest, { startMs }) => Math.max(latest, startMs), Number.NEGATIVE_INFINITY);
  const until = new Date(last).toISOString();
  return before !== undefined && before > until ? before : until;
}

/** Goes with the write of the prospect's row that makes `next` of `current`. */
export function agendaWrites(current: Owner, next: Owner, entries: readonly AgendaEntry[]): Write[] {
  const { companyId, id: prospectId, assignedToUserId, agendaUntil: until } = next;
  if (until === undefined) return agendaRemoval(current);
  const key = besideKeys.agenda(companyId, assignedToUserId, until, prospectId);
  const put: Write = { put: { ...key, type: "agenda", prospectId, bytes: encoded(entries) } };
  const hasMoved = current.assignedToUserId !== assignedToUserId || current.agendaUntil !== until;
  return hasMoved ? [put, ...agendaRemoval(current)] : [put];
}

/** A deleted prospect has none. */
export function agendaRemoval({ companyId, id, assignedToUserId, agendaUntil: until }: Owner): Write[] {
  return until === undefined ? [] : [{ remove: besideKeys.agenda(companyId, assignedToUserId, until, id) }];
}

/** Nothing but where the prospect has appointments and gets another assignee. */
export async function agendaMoves(table: Table, current: StoredProspect, next: StoredProspect): Promise<Write[]> {
  if (current.agendaUntil === undefined || current.assignedToUserId === next.assignedToUserId) return [];
  const entries = await readAgenda(table, current);
  // The row's own condition fails: somebody else has written it meanwhile.
  return entries === undefined ? [] : agendaWrites(current, next, entries);
}

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

/** Goes with every write of an appointment. The row's condition keeps two such writes from overlooking each other. */
export function keepAppointments(
  current: StoredProspect,
  upcoming: UpcomingFields,
  agenda: readonly AgendaEntry[],
): Write[] {
  const { agendaUntil: before, ...others } = current;
  const until = agendaUntil(agenda, before);
  const changed = { ...others, ...upcoming, version: current.version + 1 };
  const next = until === undefined ? changed : { ...changed, agendaUntil: until };
  return [...replaceProspect(current, next), ...agendaWrites(current, next, agenda)];
}
