/** Old and new row of a note or an appointment -> what happened to it, told with its prospect. */

import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { upcomingOf } from "#shared/prospects/agenda.ts";
import { presentAppointment, presentNote, presentProspect } from "#shared/prospects/present.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import { StoredAppointment, StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { type DomainEvent, eventOf } from "#shared/webhooks/events/catalogue.ts";
import type { RowChange } from "#shared/webhooks/events/row-change.ts";

/** Only the making of a note is an event. An import tells of itself as a whole, not of each row. */
export async function noteEvents(table: Table, change: RowChange, dictionary: Dictionary): Promise<DomainEvent[]> {
  const note = StoredNote.parse(change.after);
  if (change.before !== undefined || note.importId !== undefined) return [];
  const prospect = await prospectOf(table, note, dictionary);
  return [eventOf(note, "note.created", { note: presentNote(note, dictionary), prospect })];
}

export async function appointmentEvents(
  table: Table,
  change: RowChange,
  dictionary: Dictionary,
): Promise<DomainEvent[]> {
  const after = StoredAppointment.parse(change.after);
  const before = change.before === undefined ? undefined : StoredAppointment.parse(change.before);
  const name = appointmentEvent(before, after);
  if (name === undefined) return [];
  const prospect = await prospectOf(table, after, dictionary);
  return [eventOf(after, name, { appointment: presentAppointment(after, dictionary), prospect })];
}

function appointmentEvent(before: StoredAppointment | undefined, after: StoredAppointment) {
  // A deleted one gets another key: its row there is a new one.
  if (after.deletedAt !== undefined) return "appointment.cancelled";
  if (before === undefined) return after.importId === undefined ? "appointment.created" : undefined;
  if (before.version === after.version) return undefined;
  const cancelled = after.status === "cancelled" && before.status !== "cancelled";
  return cancelled ? "appointment.cancelled" : "appointment.updated";
}

interface Attached {
  readonly companyId: number;
  readonly prospectId: number;
  readonly updatedAt: string;
}

/** As it stands when the event is published, deleted or not. */
async function prospectOf(
  table: Table,
  { companyId, prospectId, updatedAt }: Attached,
  dictionary: Dictionary,
): Promise<Prospect> {
  const item = await table.get(keys.prospect(companyId, prospectId));
  if (item === undefined) throw new Error("a note or appointment without a prospect");
  const prospect = StoredProspect.parse(item);
  return presentProspect(prospect, await upcomingOf(table, prospect, Date.parse(updatedAt)), dictionary);
}
