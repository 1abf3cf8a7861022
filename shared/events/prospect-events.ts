/** Old and new row of a prospect -> what happened to it. */
import type * as z from "zod/mini";
import type { Dictionary } from "#shared/companies/dictionary.ts";
import { type ChangedField, catalogue, type DomainEvent, type EventName } from "#shared/events/catalogue.ts";
import { presentProspect, statusSummary } from "#shared/prospects/present.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { userSummary } from "#shared/users/users.ts";

/** In the order in which they are told. An import tells of itself as a whole, not of each row. */
export function prospectEvents(
  before: StoredProspect | undefined,
  after: StoredProspect,
  dictionary: Dictionary,
): DomainEvent[] {
  const prospect = presentProspect(after, [], dictionary, Date.parse(after.updatedAt));
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
