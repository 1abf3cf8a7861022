/** Creates, reads, changes and deletes appointments. A user who sees a prospect may do this with its appointments. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { equals, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { existing, invalid } from "#shared/errors.ts";
import { withPatch } from "#shared/patch.ts";
import { prospectAppointmentWrites } from "#shared/prospects/agenda.ts";
import type { AppointmentPatch, NewAppointment } from "#shared/prospects/input.ts";
import { presentAppointment } from "#shared/prospects/present.ts";
import { type Arrival, readVisibleProspect, requireBase } from "#shared/prospects/read.ts";
import { requireUser } from "#shared/prospects/references.ts";
import { findAttached, findLocator, locatorWrite, NOWHERE } from "#shared/prospects/rows.ts";
import type { Appointment } from "#shared/prospects/schema.ts";
import { StoredAppointment, type StoredProspect } from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Without an assignee in the request, the prospect's assignee or else the caller gets the appointment. Null leaves it unassigned. */
export async function createAppointment(
  context: ApiContext,
  caller: Caller,
  prospectId: number,
  input: NewAppointment,
  arrival: Arrival = {},
): Promise<Plan<Appointment>> {
  const { companyId, userId } = caller;
  const [id, dictionary] = await Promise.all([context.ids.next(), currentDictionary(context, companyId)]);
  if (input.assignedToUserId != null) requireUser(dictionary, "assignedToUserId", input.assignedToUserId);
  requireOrder(input.startAt, input.endAt ?? null, "endAt");
  const prospect = await readVisibleProspect(context, caller, prospectId, arrival.occurredAt);
  const { assignedToUserId = prospect.assignedToUserId ?? userId } = input;
  const nowMs = context.clock.now();
  const now = iso(nowMs);
  const appointment: StoredAppointment = {
    type: "appointment",
    id,
    companyId,
    prospectId,
    ...withPatch({ title: input.title, startAt: input.startAt, ...emptyFields, assignedToUserId }, input),
    createdAt: now,
    updatedAt: now,
    occurredAt: arrival.occurredAt,
    createdBy: userId,
    version: 1,
  };
  const change = { before: undefined, after: appointment };
  const rows = await prospectAppointmentWrites(context.table, prospect, change, nowMs);
  return {
    writes: [...rows, ...newAppointmentWrites(appointment)],
    answer: presentAppointment(appointment, dictionary),
    written: appointment,
  };
}

export const newAppointmentWrites = (appointment: StoredAppointment): Write[] => [
  { put: { ...keyOf(appointment), ...appointment } },
  { put: { ...entryOf(appointment), ...appointment, type: "calendarEntry" } },
  locatorWrite(attachedKeys.appointmentLocator(appointment.companyId, appointment.id), appointment.prospectId),
];

export async function getAppointment(context: ApiContext, caller: Caller, id: number): Promise<Appointment> {
  const [{ appointment }, dictionary] = await Promise.all([
    findAppointment(context, caller, id),
    currentDictionary(context, caller.companyId),
  ]);
  return presentAppointment(appointment, dictionary);
}

/** Throws `not_found` if the caller does not see the prospect now, even if the caller saw it at `arrival.occurredAt`. */
export async function updateAppointment(
  context: ApiContext,
  caller: Caller,
  id: number,
  patch: AppointmentPatch,
  arrival: Arrival = {},
): Promise<Plan<Appointment>> {
  const [{ appointment: current, prospect }, dictionary] = await Promise.all([
    findAppointment(context, caller, id),
    currentDictionary(context, caller.companyId),
  ]);
  await requireBase(arrival, current, () => presentAppointment(current, dictionary));
  const same = withPatch(current, patch);
  if (JSON.stringify(same) === JSON.stringify(current)) {
    return { writes: [], answer: presentAppointment(current, dictionary), written: current };
  }
  const { assignedToUserId } = same;
  if (assignedToUserId !== null && assignedToUserId !== current.assignedToUserId) {
    requireUser(dictionary, "assignedToUserId", assignedToUserId);
  }
  requireOrder(same.startAt, same.endAt, patch.endAt === undefined ? "startAt" : "endAt");
  const nowMs = context.clock.now();
  const { occurredAt } = arrival;
  const next = { ...same, occurredAt, updatedAt: iso(nowMs), version: current.version + 1 };
  const writes: Write[] = [
    ...(await prospectAppointmentWrites(context.table, prospect, { before: current, after: next }, nowMs)),
    { put: { ...keyOf(next), ...next }, when: equals("version", current.version) },
    { put: { ...entryOf(next), ...next, type: "calendarEntry" } },
    ...(next.startAt === current.startAt ? [] : [{ remove: entryOf(current) }]),
  ];
  return { writes, answer: presentAppointment(next, dictionary), written: next };
}

/** Moves the appointment's row to a key that no request reads. The publisher makes the event `appointment.cancelled` from the moved row. */
export async function deleteAppointment(
  context: ApiContext,
  caller: Caller,
  id: number,
): Promise<Plan<{ id: number }>> {
  const { appointment: current, prospect } = await findAppointment(context, caller, id);
  const nowMs = context.clock.now();
  const now = iso(nowMs);
  const version = current.version + 1;
  const gone: StoredAppointment = { ...current, status: "cancelled", updatedAt: now, deletedAt: now, version };
  const writes: Write[] = [
    ...(await prospectAppointmentWrites(context.table, prospect, { before: current, after: undefined }, nowMs)),
    { remove: keyOf(current), when: equals("version", current.version) },
    { put: { ...attachedKeys.deletedAppointment(caller.companyId, current.prospectId, id), ...gone } },
    { remove: entryOf(current) },
    { remove: attachedKeys.appointmentLocator(caller.companyId, id) },
  ];
  return { writes, answer: { id } };
}

async function findAppointment(
  context: ApiContext,
  caller: Caller,
  id: number,
): Promise<{ appointment: StoredAppointment; prospect: StoredProspect }> {
  const { companyId } = caller;
  const located = await findLocator(context.table, attachedKeys.appointmentLocator(companyId, id));
  const prospectId = located ?? NOWHERE.prospectId;
  const key = attachedKeys.appointment(companyId, prospectId, id);
  const { item, prospect } = existing(await findAttached(context, caller, prospectId, key), "appointment");
  return { appointment: StoredAppointment.parse(item), prospect };
}

const keyOf = ({ companyId, prospectId, id }: StoredAppointment): Key =>
  attachedKeys.appointment(companyId, prospectId, id);
const entryOf = ({ companyId, startAt, id }: StoredAppointment): Key =>
  attachedKeys.calendarEntry(companyId, startAt, id);

/** `field` is named in the error. */
function requireOrder(startAt: string, endAt: string | null, field: "startAt" | "endAt"): void {
  if (endAt === null || startAt <= endAt) return;
  const message = "the end must not come before the start";
  throw invalid("The appointment ends before it starts.", { pointer: `/${field}`, code: "invalid_range", message });
}

const emptyFields: Pick<StoredAppointment, "endAt" | "allDay" | "status" | "location" | "notes"> = {
  endAt: null,
  allDay: false,
  status: "scheduled",
  location: null,
  notes: null,
};
