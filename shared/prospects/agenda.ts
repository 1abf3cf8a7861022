/**
 * A prospect's row has copies of its next appointments, for lists. Its agenda is for the calendar of a user who sees only assigned
 * prospects. One transaction changes both rows. The key of an agenda contains a time that never decreases. So a Query in ascending order
 * that runs during a change of the key may return the agenda twice, but cannot miss it.
 */
import * as z from "zod/mini";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Reads } from "#shared/db/reads.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { holdersOf } from "#shared/prospects/assignments.ts";
import { soonestFirst } from "#shared/prospects/present.ts";
import { factOfAppointment, replaceProspect } from "#shared/prospects/rows.ts";
import { type Later, laterOf, StoredAppointment, type StoredProspect } from "#shared/prospects/stored.ts";
import { Id } from "#shared/schema.ts";

export interface AgendaEntry {
  readonly id: number;
  readonly startMs: number;
  readonly isScheduled: boolean;
}

type Placed = Pick<StoredAppointment, "id" | "prospectId">;

const Stored = z.object({ prospectId: Id, bytes: z.instanceof(Uint8Array) });

export function agendaOf(item: Item): { prospectId: number; entries: AgendaEntry[] } {
  const { prospectId, bytes } = Stored.parse(item);
  const from = new ByteReader(bytes);
  const entries: AgendaEntry[] = [];
  while (!from.done) {
    entries.push({ id: from.integer(), startMs: from.signed(), isScheduled: from.integer() === 1 });
  }
  return { prospectId, entries };
}

function encoded(entries: readonly AgendaEntry[]): Uint8Array {
  const into = new ByteWriter();
  for (const { id, startMs, isScheduled } of entries) {
    into.integer(id);
    into.signed(startMs);
    into.integer(isScheduled ? 1 : 0);
  }
  return into.finish();
}

/** Reads the agendas of an assignee's prospects, or of unassigned ones (null). May miss agendas whose last start is before `from`. */
export async function agendaEntries(
  table: Reads,
  companyId: number,
  userId: number | null,
  from = "0",
): Promise<(AgendaEntry & Placed)[]> {
  const found = new Map<number, AgendaEntry & Placed>();
  for await (const item of table.query(attachedKeys.agendas(companyId, userId, from))) {
    const { prospectId, entries } = agendaOf(item);
    for (const entry of entries) found.set(entry.id, { ...entry, prospectId });
  }
  return [...found.values()];
}

/** Reads the appointments of `places`, as far as they still exist. Returns them in no defined order. */
export async function appointmentsAt(
  table: Reads,
  companyId: number,
  places: readonly Placed[],
): Promise<StoredAppointment[]> {
  const keys = places.map(({ prospectId, id }) => attachedKeys.appointment(companyId, prospectId, id));
  return (await table.batchGet(keys)).map((item) => StoredAppointment.parse(item));
}

type Owner = Pick<StoredProspect, "companyId" | "id" | "assignedToUserId" | "agendaUntil">;

/** Undefined if the agenda has got another key since the prospect's row was read. */
async function readAgenda(table: Reads, prospect: Owner): Promise<readonly AgendaEntry[] | undefined> {
  const { companyId, id, assignedToUserId, agendaUntil } = prospect;
  if (agendaUntil === undefined) return [];
  const item = await table.get(attachedKeys.agenda(companyId, assignedToUserId, agendaUntil, id));
  return item === undefined ? undefined : agendaOf(item).entries;
}

/** Returns the agenda after the change of one appointment. `after` is undefined if the appointment is deleted. */
export function agendaAfter(
  entries: readonly AgendaEntry[],
  id: number,
  after: Pick<StoredAppointment, "startAt" | "status"> | undefined,
): AgendaEntry[] {
  const others = entries.filter((entry) => entry.id !== id);
  return after === undefined ? others : [...others, agendaEntry({ ...after, id })];
}

type Timed = Pick<StoredAppointment, "id" | "startAt" | "status">;

export const agendaEntry = ({ id, startAt, status }: Timed): AgendaEntry => {
  return { id, startMs: Date.parse(startAt), isScheduled: status === "scheduled" };
};

/** Returns the new time for the agenda's key: the latest start, or the old time `before` if it is later. Undefined without appointments. */
export function agendaUntil(entries: readonly AgendaEntry[], before: string | undefined): string | undefined {
  if (entries.length === 0) return undefined;
  const last = entries.reduce((latest, { startMs }) => Math.max(latest, startMs), Number.NEGATIVE_INFINITY);
  const until = new Date(last).toISOString();
  return before !== undefined && before > until ? before : until;
}

/** Returns writes that store the agenda and remove it under an old key, for the transaction that replaces the row `current` by `next`. */
export function agendaWrites(current: Owner, next: Owner, entries: readonly AgendaEntry[]): Write[] {
  const { companyId, id: prospectId, assignedToUserId, agendaUntil: until } = next;
  if (until === undefined) return agendaRemoval(current);
  const key = attachedKeys.agenda(companyId, assignedToUserId, until, prospectId);
  const put: Write = { put: { ...key, type: "agenda", prospectId, bytes: encoded(entries) } };
  const hasMoved = current.assignedToUserId !== assignedToUserId || current.agendaUntil !== until;
  return hasMoved ? [put, ...agendaRemoval(current)] : [put];
}

export function agendaRemoval({ companyId, id, assignedToUserId, agendaUntil: until }: Owner): Write[] {
  return until === undefined ? [] : [{ remove: attachedKeys.agenda(companyId, assignedToUserId, until, id) }];
}

export async function agendaMoves(table: Reads, current: StoredProspect, next: StoredProspect): Promise<Write[]> {
  if (current.agendaUntil === undefined || current.assignedToUserId === next.assignedToUserId) return [];
  const entries = await readAgenda(table, current);
  // A concurrent write that has moved the agenda has also changed the prospect's row, so this transaction will fail.
  return entries === undefined ? [] : agendaWrites(current, next, entries);
}

/** Maximum appointments that a prospect's row copies. With several, lists need no read when the first one has begun. */
const COPIES = 3;
/** Maximum bytes of all copies. One appointment alone may have 10 000 characters of notes. */
const COPIES_BYTES = 2_000;

type UpcomingFields = Pick<StoredProspect, "upcoming" | "later">;

export const nothingUpcoming: UpcomingFields = { upcoming: [], later: [] };

/** `before` is undefined for a new appointment, and `after` is undefined for a deleted one. */
export type AppointmentChange =
  | { readonly before: undefined; readonly after: StoredAppointment }
  | { readonly before: StoredAppointment; readonly after: StoredAppointment | undefined };

export const upcomingFields = (appointments: readonly StoredAppointment[], nowMs: number): UpcomingFields =>
  fitting(aheadAmong(appointments, [], nowMs), appointments);

/** Returns the copies after a change of an appointment. Reads appointments only if the old copies and the change do not suffice. */
async function upcomingAfter(
  table: Reads,
  prospect: StoredProspect,
  { before, after }: AppointmentChange,
  nowMs: number,
): Promise<UpcomingFields> {
  const copies = prospect.upcoming.filter(({ id }) => id !== before?.id);
  const known = after === undefined ? copies : [...copies, after];
  const others = prospect.later.filter(([id]) => id !== before?.id);
  const ahead = aheadAmong(known, others, nowMs);
  const [first] = ahead;
  if (first === undefined || known.some(({ id }) => id === first[0])) return fitting(ahead, known);
  const read = await readSome(table, prospect, ahead.slice(0, COPIES), after);
  return fitting(ahead, read);
}

/** Returns the id and start of each given appointment that is upcoming, soonest first. */
const aheadAmong = (appointments: readonly StoredAppointment[], others: readonly Later[], nowMs: number): Later[] =>
  [
    ...appointments.filter((appointment) => isUpcoming(appointment, nowMs)).map(laterOf),
    ...others.filter(([, startMs]) => startMs >= nowMs),
  ].sort(([a, aStart], [b, bStart]) => aStart - bStart || a - b);

/** Reads the appointments of `entries`. `changed` is not read but returned as given, because the table does not have its new state yet. */
async function readSome(
  table: Reads,
  { companyId, id: prospectId }: Pick<StoredProspect, "companyId" | "id">,
  entries: readonly Later[],
  changed?: StoredAppointment,
): Promise<StoredAppointment[]> {
  const others = entries.filter(([id]) => id !== changed?.id);
  const found = await appointmentsAt(
    table,
    companyId,
    others.map(([id]) => ({ id, prospectId })),
  );
  return changed !== undefined && others.length < entries.length ? [...found, changed] : found;
}

/** Copies the soonest appointments in `ahead`, up to `COPIES` and `COPIES_BYTES`. `known` contains at least the appointments to copy. */
function fitting(ahead: readonly Later[], known: readonly StoredAppointment[]): UpcomingFields {
  const upcoming: StoredAppointment[] = [];
  let bytes = 0;
  for (const [id] of ahead.slice(0, COPIES)) {
    const copy = known.find((appointment) => appointment.id === id);
    if (copy === undefined) break;
    bytes += Buffer.byteLength(JSON.stringify(copy));
    if (bytes > COPIES_BYTES) break;
    upcoming.push(copy);
  }
  return { upcoming, later: ahead.slice(upcoming.length) };
}

/** Returns the soonest upcoming appointment. Reads it only if the times of all copies have passed and more appointments exist. */
export async function nextAppointment(
  table: Reads,
  prospect: Pick<StoredProspect, "companyId" | "id" | "upcoming" | "later">,
  nowMs: number,
): Promise<StoredAppointment | undefined> {
  const { upcoming, later } = prospect;
  const copy = upcoming.find((appointment) => isUpcoming(appointment, nowMs));
  const next = later.find(([, startMs]) => startMs >= nowMs);
  if (copy !== undefined || next === undefined) return copy;
  const [found] = await readSome(table, prospect, [next]);
  if (found !== undefined && isUpcoming(found, nowMs)) return found;
  // A concurrent write has deleted this appointment or changed its time, so another one may be the next.
  const all = await readAppointments(table, prospect);
  return all.filter((appointment) => isUpcoming(appointment, nowMs)).sort(soonestFirst)[0];
}

export const readAppointments = (
  table: Reads,
  { companyId, id }: Pick<StoredProspect, "companyId" | "id">,
): Promise<StoredAppointment[]> =>
  Array.fromAsync(table.query(attachedKeys.appointments(companyId, id)), (item) => StoredAppointment.parse(item));

const isUpcoming = ({ status, startAt, deletedAt }: StoredAppointment, nowMs: number): boolean =>
  deletedAt === undefined && status === "scheduled" && Date.parse(startAt) >= nowMs;

/**
 * Returns the writes of the prospect's row and its agenda for a change of an appointment. They fail if the row has changed since it was
 * read. Throws `conflict` if the prospect has too many appointments.
 */
export async function prospectAppointmentWrites(
  table: Reads,
  current: StoredProspect,
  change: AppointmentChange,
  nowMs: number,
): Promise<Write[]> {
  const entries = await readAgenda(table, current);
  // A concurrent write has changed the agenda's key, so the verb is called again.
  if (entries === undefined) throw new ConditionFailed([]);
  if (change.before === undefined && entries.length >= limits.appointmentsPerProspect) {
    throw new ApiError("conflict", `A prospect may have at most ${limits.appointmentsPerProspect} appointments.`);
  }
  const subject = change.before === undefined ? change.after : change.before;
  const { id } = subject;
  const agenda = agendaAfter(entries, id, change.after);
  const upcoming = await upcomingAfter(table, current, change, nowMs);
  const { agendaUntil: before, appointments: _, ...others } = current;
  const until = agendaUntil(agenda, before);
  const changed = { ...others, ...upcoming, appointmentsChangedAt: nowMs, version: current.version + 1 };
  const next = until === undefined ? changed : { ...changed, agendaUntil: until, appointments: agenda.length };
  const appointment =
    change.after === undefined
      ? { id, version: subject.version + 1, isDeleted: true, holders: holdersOf(current, subject, nowMs) }
      : { id, version: change.after.version, isDeleted: false };
  const fact = change.before === undefined ? factOfAppointment(change.after) : undefined;
  return [...replaceProspect(current, next, undefined, { appointment, fact }), ...agendaWrites(current, next, agenda)];
}
