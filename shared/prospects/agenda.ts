/**
 * The upcoming appointments of a prospect, for lists, and its agenda, for the calendar of a user who sees only assigned prospects. The
 * prospect's row, with copies of the next appointments, and the agenda change in one transaction, so they always agree. The key of an
 * agenda contains a time that never decreases while the agenda exists. If the agenda gets a new key during a Query in key order, the Query
 * may therefore return it twice, but cannot miss it.
 */
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Reads } from "#shared/db/reads.ts";
import { holdersOf } from "#shared/prospects/assignments.ts";
import { soonestFirst } from "#shared/prospects/present.ts";
import { factOfAppointment, replaceProspect } from "#shared/prospects/rows.ts";
import { StoredAppointment, type StoredProspect } from "#shared/prospects/stored.ts";
import { Id } from "#shared/schema.ts";

export interface AgendaEntry {
  readonly id: number;
  readonly startMs: number;
  readonly isScheduled: boolean;
}

interface Agenda {
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

/** Encodes an appointment in about ten bytes. */
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

export type WithAppointments = Owner & Pick<StoredProspect, "upcoming" | "moreUpcomingUntil">;

/** Returns undefined if the agenda has got another key since the prospect's row was read. */
export async function readAgenda(table: Reads, prospect: Owner): Promise<readonly AgendaEntry[] | undefined> {
  const { companyId, id, assignedToUserId, agendaUntil } = prospect;
  if (agendaUntil === undefined) return [];
  const item = await table.get(attachedKeys.agenda(companyId, assignedToUserId, agendaUntil, id));
  return item === undefined ? undefined : agendaOf(item).entries;
}

/** `after` is undefined if the appointment is deleted. */
export function agendaAfter(
  entries: readonly AgendaEntry[],
  id: number,
  after: Pick<StoredAppointment, "startAt" | "status"> | undefined,
): AgendaEntry[] {
  const others = entries.filter((entry) => entry.id !== id);
  if (after === undefined) return others;
  return [...others, { id, startMs: Date.parse(after.startAt), isScheduled: after.status === "scheduled" }];
}

/** Returns the latest start of an appointment, but never a time earlier than `before`. Returns undefined without appointments. */
export function agendaUntil(entries: readonly AgendaEntry[], before: string | undefined): string | undefined {
  if (entries.length === 0) return undefined;
  const last = entries.reduce((latest, { startMs }) => Math.max(latest, startMs), Number.NEGATIVE_INFINITY);
  const until = new Date(last).toISOString();
  return before !== undefined && before > until ? before : until;
}

/** These writes belong to the transaction that replaces the prospect's row `current` by `next`. */
export function agendaWrites(current: Owner, next: Owner, entries: readonly AgendaEntry[]): Write[] {
  const { companyId, id: prospectId, assignedToUserId, agendaUntil: until } = next;
  if (until === undefined) return agendaRemoval(current);
  const key = attachedKeys.agenda(companyId, assignedToUserId, until, prospectId);
  const put: Write = { put: { ...key, type: "agenda", prospectId, bytes: encoded(entries) } };
  const hasMoved = current.assignedToUserId !== assignedToUserId || current.agendaUntil !== until;
  return hasMoved ? [put, ...agendaRemoval(current)] : [put];
}

/** Returns no write if the prospect has no agenda. */
export function agendaRemoval({ companyId, id, assignedToUserId, agendaUntil: until }: Owner): Write[] {
  return until === undefined ? [] : [{ remove: attachedKeys.agenda(companyId, assignedToUserId, until, id) }];
}

export async function agendaMoves(table: Reads, current: StoredProspect, next: StoredProspect): Promise<Write[]> {
  if (current.agendaUntil === undefined || current.assignedToUserId === next.assignedToUserId) return [];
  const entries = await readAgenda(table, current);
  // A concurrent write has changed the key of the agenda and also the prospect's row. The current transaction will therefore fail.
  return entries === undefined ? [] : agendaWrites(current, next, entries);
}

/** Maximum number of copies. With one copy, the row would show no next appointment after its time until the next write. */
const COPIES = 3;
/** Maximum bytes of all copies. One appointment alone may have 10 000 characters of notes. */
const COPIES_BYTES = 2_000;

type UpcomingFields = Pick<StoredProspect, "upcoming" | "moreUpcomingUntil">;

export const nothingUpcoming: UpcomingFields = { upcoming: [], moreUpcomingUntil: null };

/** `before` is undefined for a new appointment, and `after` is undefined for a deleted one. */
export interface AppointmentChange {
  readonly before: StoredAppointment | undefined;
  readonly after: StoredAppointment | undefined;
}

/** Selects the soonest upcoming appointments, within the limits `COPIES` and `COPIES_BYTES`. */
export function upcomingFields(appointments: readonly StoredAppointment[], nowMs: number): UpcomingFields {
  return fitting(
    appointments.filter((appointment) => isUpcoming(appointment, nowMs)),
    null,
  );
}

/**
 * Usually the current copies and the change are sufficient. If no copy is left although there may be more upcoming appointments, reads the
 * soonest ones. `agenda` must already include the change.
 */
export async function upcomingAfter(
  table: Reads,
  prospect: StoredProspect,
  change: AppointmentChange,
  agenda: readonly AgendaEntry[],
  nowMs: number,
): Promise<UpcomingFields> {
  const fields = changedFields(prospect, change, nowMs);
  if (fields.upcoming.length > 0 || fields.moreUpcomingUntil === null) return fields;
  const ahead = entriesAhead(agenda, nowMs);
  const soonest = await readSome(table, prospect, ahead.slice(0, COPIES), change.after);
  const last = ahead.length > soonest.length ? ahead.at(-1) : undefined;
  return fitting(soonest, last === undefined ? null : iso(last.startMs));
}

const entriesAhead = (agenda: readonly AgendaEntry[], nowMs: number): AgendaEntry[] =>
  agenda.filter(({ isScheduled, startMs }) => isScheduled && startMs >= nowMs).sort(soonestEntryFirst);

/** The appointment `changed` is returned as given, because its new state is not in the table yet. */
async function readSome(
  table: Reads,
  { companyId, id: prospectId }: Pick<StoredProspect, "companyId" | "id">,
  entries: readonly AgendaEntry[],
  changed: StoredAppointment | undefined,
): Promise<StoredAppointment[]> {
  const others = entries.filter(({ id }) => id !== changed?.id);
  const items = await table.batchGet(others.map(({ id }) => attachedKeys.appointment(companyId, prospectId, id)));
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

/** `more` is the latest start of the upcoming appointments that are not in `appointments`, or null if there are no others. */
function fitting(appointments: readonly StoredAppointment[], more: string | null): UpcomingFields {
  const all = appointments.toSorted(soonestFirst);
  const upcoming: StoredAppointment[] = [];
  let bytes = 0;
  for (const appointment of all.slice(0, COPIES)) {
    bytes += Buffer.byteLength(JSON.stringify(appointment));
    if (bytes > COPIES_BYTES) break;
    upcoming.push(appointment);
  }
  const last = all.at(-1);
  const isCut = last !== undefined && upcoming.length < all.length;
  return { upcoming, moreUpcomingUntil: isCut ? latest(more, last.startAt) : more };
}

/** Timestamps have a fixed format, so comparing the strings compares the times. */
const latest = (a: string | null, b: string): string => (a === null || a < b ? b : a);

/** Reads the table only if the times of all copies have passed and there may be more appointments. */
export async function nextAppointment(
  table: Reads,
  prospect: WithAppointments,
  nowMs: number,
): Promise<StoredAppointment | undefined> {
  const { upcoming, moreUpcomingUntil } = prospect;
  const copy = upcoming.find((appointment) => isUpcoming(appointment, nowMs));
  if (copy !== undefined || moreUpcomingUntil === null || Date.parse(moreUpcomingUntil) < nowMs) return copy;
  const agenda = await readAgenda(table, prospect);
  const [next] = entriesAhead(agenda ?? [], nowMs);
  const [found] = next === undefined ? [] : await readSome(table, prospect, [next], undefined);
  if (found !== undefined && isUpcoming(found, nowMs)) return found;
  if (agenda !== undefined && next === undefined) return undefined;
  // A concurrent write has changed an appointment or the assignee, so the agenda does not match the appointments.
  const all = await readAppointments(table, prospect);
  return all.filter((appointment) => isUpcoming(appointment, nowMs)).sort(soonestFirst)[0];
}

/** The result of `begunAppointments` if all have begun or the agenda is not found. It is above `limits.appointmentsPerProspect`. */
const ALL_BEGUN = 4_096;

/**
 * Returns a number that grows when an appointment begins. The prospect then looks different to a device, although no row was written. `GET
 * /api/changes` therefore adds it to the version. It never decreases while the prospect's row keeps its version.
 */
export async function begunAppointments(table: Reads, prospect: WithAppointments, nowMs: number): Promise<number> {
  const { upcoming, moreUpcomingUntil } = prospect;
  const at = upcoming.findIndex((appointment) => isUpcoming(appointment, nowMs));
  if (at >= 0) return at;
  if (moreUpcomingUntil === null) return upcoming.length;
  if (Date.parse(moreUpcomingUntil) < nowMs) return ALL_BEGUN;
  const agenda = await readAgenda(table, prospect);
  return agenda === undefined ? ALL_BEGUN : upcoming.length + agenda.filter(({ startMs }) => startMs < nowMs).length;
}

async function readAppointments(
  table: Reads,
  { companyId, id }: Pick<StoredProspect, "companyId" | "id">,
): Promise<StoredAppointment[]> {
  const found: StoredAppointment[] = [];
  for await (const item of table.query(attachedKeys.appointments(companyId, id)))
    found.push(StoredAppointment.parse(item));
  return found;
}

const isUpcoming = ({ status, startAt, deletedAt }: StoredAppointment, nowMs: number): boolean =>
  deletedAt === undefined && status === "scheduled" && Date.parse(startAt) >= nowMs;

/** Every change of an appointment must include these writes. They fail if the prospect's row has changed since `current` was read. */
export function prospectAppointmentWrites(
  current: StoredProspect,
  { before: earlier, after }: AppointmentChange,
  upcoming: UpcomingFields,
  agenda: readonly AgendaEntry[],
  nowMs: number,
): Write[] {
  const { agendaUntil: before, appointments: _, ...others } = current;
  const until = agendaUntil(agenda, before);
  const changed = { ...others, ...upcoming, appointmentsChangedAt: nowMs, version: current.version + 1 };
  const next = until === undefined ? changed : { ...changed, agendaUntil: until, appointments: agenda.length };
  const { id = 0, version = 0 } = after ?? earlier ?? {};
  const isDeleted = after === undefined;
  const heldBy = isDeleted && earlier !== undefined ? holdersOf(current, earlier, nowMs) : undefined;
  const appointment = { id, version: isDeleted ? version + 1 : version, isDeleted, ...(heldBy && { heldBy }) };
  const fact = earlier === undefined && after !== undefined ? factOfAppointment(after) : undefined;
  return [...replaceProspect(current, next, undefined, { appointment, fact }), ...agendaWrites(current, next, agenda)];
}
