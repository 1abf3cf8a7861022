/**
 * Makes webhook events from changed rows. A stream record contains the row before and after a write. The difference shows what happened.
 */
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { unpacked } from "#shared/db/packed.ts";
import type { Table } from "#shared/db/table.ts";
import { RowFault, StoredImport } from "#shared/jobs/import/stored.ts";
import { nextAppointment } from "#shared/prospects/agenda.ts";
import { presentAppointment, presentNote, presentProspect, statusSummary } from "#shared/prospects/present.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import { StoredAppointment, StoredNote, type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { userSummary } from "#shared/reference/users.ts";
import { presentTerritory, StoredTerritory } from "#shared/territories/territories.ts";
import {
  type ChangedField,
  type catalogue,
  type DomainEvent,
  type EventName,
  eventOf,
} from "#shared/webhooks/events/catalogue.ts";

/**
 * The attribute of a row that an operator has restored, with the time of the restore. Such a write makes no event, because no user has
 * changed the record.
 */
export const RESTORED_AT = "restoredAt";

/** One record of the table's stream. `before` is undefined for a new row, and `after` is undefined for a deleted row. */
export interface RowChange {
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/**
 * The types of rows whose changes are events. The stream's filter drops all other types. Deleting a row makes no event, because the
 * record was marked as deleted before, and this made the event.
 */
export const publishedTypes = ["prospect", "note", "appointment", "territory", "import"] as const;
export type PublishedType = (typeof publishedTypes)[number];

type Derive = (table: Table, change: RowChange, dictionary: () => Promise<Dictionary>) => Promise<DomainEvent[]>;

/** The functions that make the events, by the type of the changed row. */
export const eventsOf: Record<PublishedType, Derive> = {
  prospect: prospectEvents,
  note: noteEvents,
  appointment: appointmentEvents,
  territory: async (_, { before, after }) =>
    territoryEvents(before === undefined ? undefined : StoredTerritory.parse(before), StoredTerritory.parse(after)),
  import: async (_, { before, after }) => importEvents(before, after),
};

/** Makes the events of a prospect. The table is read only if the prospect has more upcoming appointments than its row can contain. */
async function prospectEvents(
  table: Table,
  change: RowChange,
  dictionary: () => Promise<Dictionary>,
): Promise<DomainEvent[]> {
  const before = change.before === undefined ? undefined : storedProspect(change.before);
  const after = storedProspect(change.after);
  const upcoming = await nextAppointment(table, after, Date.parse(after.updatedAt));
  return prospectEventsBetween(before, after, upcoming, await dictionary());
}

/**
 * Returns the events for a change of a prospect. Creating a prospect by an import makes no event, because the import makes one event for
 * the whole file.
 */
function prospectEventsBetween(
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
  const changedFields = prospectFields
    .filter(([, field]) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
    .map(([name]) => name);
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

/** The names in the event's list `changedFields`, each with the field of the row. */
const prospectFields: ReadonlyArray<readonly [ChangedField, keyof StoredProspect]> = [
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

/** Makes the event of a new note. Other changes of a note are no events. */
async function noteEvents(
  table: Table,
  change: RowChange,
  dictionary: () => Promise<Dictionary>,
): Promise<DomainEvent[]> {
  const note = StoredNote.parse(change.after);
  if (change.before !== undefined || note.importId !== undefined) return [];
  const names = await dictionary();
  const prospect = await prospectOf(table, note, names);
  return [eventOf(note, "note.created", { note: presentNote(note, names), prospect })];
}

async function appointmentEvents(
  table: Table,
  change: RowChange,
  dictionary: () => Promise<Dictionary>,
): Promise<DomainEvent[]> {
  const after = StoredAppointment.parse(change.after);
  const before = change.before === undefined ? undefined : StoredAppointment.parse(change.before);
  const name = appointmentEvent(before, after);
  if (name === undefined) return [];
  const names = await dictionary();
  const prospect = await prospectOf(table, after, names);
  return [eventOf(after, name, { appointment: presentAppointment(after, names), prospect })];
}

function appointmentEvent(before: StoredAppointment | undefined, after: StoredAppointment) {
  // A deletion first moves the row to another key, so the stream reports it as a new row.
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

/** Reads the prospect of a note or appointment at the time of publication, even if the prospect is deleted. */
async function prospectOf(
  table: Table,
  { companyId, prospectId, updatedAt }: Attached,
  dictionary: Dictionary,
): Promise<Prospect> {
  const item = await table.get(keys.prospect(companyId, prospectId));
  if (item === undefined) throw new Error("a note or appointment without a prospect");
  const prospect = storedProspect(item);
  return presentProspect(prospect, await nextAppointment(table, prospect, Date.parse(updatedAt)), dictionary);
}

/** Returns at most one event. Each write that raises the row's version number creates, changes or deletes the territory. */
function territoryEvents(before: StoredTerritory | undefined, after: StoredTerritory): DomainEvent[] {
  if (before !== undefined && (before.deletedAt !== undefined || before.version === after.version)) return [];
  return [eventOf(after, territoryEvent(before, after), { territory: presentTerritory(after) })];
}

function territoryEvent(before: StoredTerritory | undefined, after: StoredTerritory) {
  // A deletion first moves the row to another key, so the stream reports it as a new row.
  if (after.deletedAt !== undefined) return "territory.deleted";
  return before === undefined ? "territory.created" : "territory.updated";
}

/** Maximum number of errors in an event. A delivery with its body must fit into one row of 400 KB. */
const IMPORT_ERRORS = 100;

/** Accepts binary values as bytes (from the table) and as base64 text (from stream records). */
const Bytes = z.union([
  z.instanceof(Uint8Array),
  z.pipe(
    z.string(),
    z.transform((base64) => Buffer.from(base64, "base64")),
  ),
]);
const ImportRow = z.extend(StoredImport, { errors: Bytes });
const State = z.object({ state: z.string() });

/** Makes one event when an import is completed. A dry run makes none. */
function importEvents(before: unknown, after: unknown): DomainEvent[] {
  const row = ImportRow.parse(after);
  const was = before === undefined ? undefined : State.parse(before).state;
  if (row.state !== "completed" || was === "completed" || row.dryRun === true) return [];
  const { id, imported, updated, skipped } = row;
  const errors = unpacked(z.array(RowFault), row.errors).slice(0, IMPORT_ERRORS);
  return [eventOf(row, "prospect.import_completed", { id, imported, updated, skipped, errors })];
}
