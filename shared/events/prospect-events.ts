/** Old and new row of a prospect -> what happened to it, told with the prospect as a GET would have shown it. */
import type * as z from "zod/mini";
import { StoredAppointment } from "#shared/appointments/schema.ts";
import type { Dictionary } from "#shared/companies/dictionary.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { type ChangedField, catalogue, type DomainEvent, type EventName } from "#shared/events/catalogue.ts";
import type { RowChange } from "#shared/events/publish.ts";
import { presentProspect, statusSummary } from "#shared/prospects/present.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { userSummary } from "#shared/users/users.ts";

/** One Query, unless the prospect is new: nothing can hang on it before it is there. */
export async function prospectEvents(table: Table, change: RowChange, dictionary: Dictionary): Promise<DomainEvent[]> {
  const after = StoredProspect.parse(change.after);
  if (change.before === undefined) return eventsBetween(undefined, after, [], dictionary);
  return eventsBetween(StoredProspect.parse(change.before), after, await appointmentsOf(table, after), dictionary);
}

/**
 * Those that were there when the prospect changed, as they stand when its event is published. A repeated publication may
 * read others: each delivery keeps the body that it was first written with.
 */
async function appointmentsOf(
  table: Table,
  { companyId, id, updatedAt }: StoredProspect,
): Promise<StoredAppointment[]> {
  const appointments: StoredAppointment[] = [];
  for await (const item of table.query(keys.appointments(companyId, id))) {
    const appointment = StoredAppointment.parse(item);
    if (appointment.deletedAt === undefined && appointment.createdAt <= updatedAt) appointments.push(appointment);
  }
  return appointments;
}

/** In the order in which they are told. An import tells of itself as a whole, not of each row. */
function eventsBetween(
  before: StoredProspect | undefined,
  after: StoredProspect,
  appointments: readonly StoredAppointment[],
  dictionary: Dictionary,
): DomainEvent[] {
  const prospect = presentProspect(after, appointments, dictionary, Date.parse(after.updatedAt));
  const event = <Name extends EventName>(name: Name, data: z.input<(typeof catalogue)[Name]>): DomainEvent => ({
    id: `${after.id}-${after.version}-${name}`,
    event: name,
    companyId: after.companyId,
    createdAt: after.updatedAt,
    data: catalogue[name].parse(data),
  });

  if (before === undefined) return after.importId === undefined ? [event("prospect.created", { prospect })] : [];
  if (after.deletedAt !== undefined) {
    return before.deletedAt === undefined ? [event("prospect.deleted", { prospect })] : [];
  }
  const changedFields = changes(before, after);
  if (changedFields.length === 0) return [];
  const events: DomainEvent[] = [];
  const { statuses, users } = dictionary;
  if (changedFields.includes("currentStatus")) {
    const status = (id: number | null) => (id === null ? null : statusSummary(statuses.get(id)));
    events.push(
      event("prospect.status_changed", {
        prospect,
        previousStatus: status(before.statusId),
        newStatus: status(after.statusId),
        statusHistoryId: after.statusHistoryId,
        changedBy: userSummary(users.get(after.updatedBy)),
      }),
    );
  }
  if (changedFields.includes("assignedTo")) {
    const user = (id: number | null) => (id === null ? null : userSummary(users.get(id)));
    events.push(
      event("prospect.assigned", {
        prospect,
        previousAssignee: user(before.assignedToUserId),
        newAssignee: user(after.assignedToUserId),
      }),
    );
  }
  events.push(event("prospect.updated", { prospect, changedFields }));
  return events;
}

/** Field of the interface <- field of the row. */
const fields: ReadonlyArray<readonly [ChangedField, keyof StoredProspect]> = [
  ["name", "name"],
  ["phoneNumber", "phoneNumber"],
  ["secondaryPhoneNumber", "secondaryPhoneNumber"],
  ["emailAddress", "emailAddress"],
  ["lat", "lat"],
  ["lng", "lng"],
  ["address", "address"],
  ["currentStatus", "statusId"],
  ["assignedTo", "assignedToUserId"],
  ["tags", "tagIds"],
  ["source", "source"],
  ["sourceId", "sourceId"],
  ["customFieldData", "customFieldData"],
];

const changes = (before: StoredProspect, after: StoredProspect): ChangedField[] =>
  fields.filter(([, row]) => JSON.stringify(before[row]) !== JSON.stringify(after[row])).map(([name]) => name);
