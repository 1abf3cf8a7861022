/** Old and new row of a prospect -> what happened to it, told with the prospect as a GET would have shown it. */
import type * as z from "zod/mini";
import type { Table } from "#shared/db/table.ts";
import { upcomingOf } from "#shared/prospects/agenda.ts";
import { presentProspect, statusSummary } from "#shared/prospects/present.ts";
import type { StoredAppointment } from "#shared/prospects/stored.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { userSummary } from "#shared/reference/users.ts";
import {
  type ChangedField,
  type catalogue,
  type DomainEvent,
  type EventName,
  eventOf,
} from "#shared/webhooks/events/catalogue.ts";
import type { RowChange } from "#shared/webhooks/events/row-change.ts";

/** The row says all, but where a prospect has more upcoming appointments than it has room for. */
export async function prospectEvents(table: Table, change: RowChange, dictionary: Dictionary): Promise<DomainEvent[]> {
  const before = change.before === undefined ? undefined : StoredProspect.parse(change.before);
  const after = StoredProspect.parse(change.after);
  const upcoming = await upcomingOf(table, after, Date.parse(after.updatedAt));
  return eventsBetween(before, after, upcoming, dictionary);
}

/** In the order in which they are told. An import tells of itself as a whole, not of each row. */
function eventsBetween(
  before: StoredProspect | undefined,
  after: StoredProspect,
  upcoming: StoredAppointment | undefined,
  dictionary: Dictionary,
): DomainEvent[] {
  const prospect = presentProspect(after, upcoming, dictionary);
  const event = <Name extends EventName>(name: Name, data: z.input<(typeof catalogue)[Name]>): DomainEvent =>
    eventOf(after, name, data);

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
        statusHistoryId: after.lastStatusChange?.id ?? null,
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
