/** Makes webhook events from changed rows: from the difference between a row before and after a write. */
import type * as z from "zod/mini";
import { keyNotices, StoredKeyRing } from "#shared/auth/key-ring.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { unpacked } from "#shared/db/packed.ts";
import type { Table } from "#shared/db/table.ts";
import { presentJob } from "#shared/jobs/bulk/read.ts";
import { hasEnded, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { RowFaults, StoredImport } from "#shared/jobs/import/stored.ts";
import { nextAppointment } from "#shared/prospects/agenda.ts";
import { presentAppointment, presentNote, presentProspect, statusSummary } from "#shared/prospects/present.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import {
  bulkJobOf,
  StoredAppointment,
  StoredNote,
  type StoredProspect,
  storedProspect,
} from "#shared/prospects/stored.ts";
import { presentKey } from "#shared/reference/api-keys.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { summaryOf, userSummary } from "#shared/reference/users.ts";
import { presentTerritory, StoredTerritory } from "#shared/territories/territories.ts";
import {
  type ChangedField,
  type catalogue,
  type DomainEvent,
  eventOf,
  type ProspectEvent,
} from "#shared/webhooks/catalogue.ts";

/** The attribute with the time at which the row was copied from a backup. The copy makes no event: no user has changed the record. */
export const COPIED_FROM_BACKUP_AT = "copiedFromBackupAt";

/** `before` is undefined for a new row, `after` for a deleted row. */
export interface RowChange {
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/**
 * The types of the rows whose changes make events. The stream's filter drops all other rows. The physical deletion of a row makes no event,
 * because the write that marked the record as deleted made one.
 */
export const publishedTypes = ["prospect", "note", "appointment", "territory", "import", "bulkJob", "keyRing"] as const;
export type PublishedType = (typeof publishedTypes)[number];

/**
 * The patterns of the stream's filter: a record must match one of them. The rows that an import creates make no events and match none. The
 * functions that read the stream could otherwise use all executions of a small account during an import.
 */
export const publishedPatterns = (): object[] => [
  { dynamodb: { NewImage: { type: { S: publishedTypes.filter((type) => type !== "prospect" && type !== "note") } } } },
  { dynamodb: { NewImage: { type: { S: ["prospect", "note"] }, importId: { S: [{ exists: false }] } } } },
  { eventName: ["MODIFY"], dynamodb: { NewImage: { type: { S: ["prospect"] } } } },
];

type LoadDictionary = () => Promise<Dictionary>;
type Derive = (table: Table, change: RowChange, dictionary: LoadDictionary) => Promise<DomainEvent[]>;

export const eventsOf: Record<PublishedType, Derive> = {
  prospect: prospectEvents,
  note: noteEvents,
  appointment: appointmentEvents,
  territory: async (_, { before, after }) =>
    territoryEvents(before === undefined ? undefined : StoredTerritory.parse(before), StoredTerritory.parse(after)),
  import: async (_, { before, after }) => importEvents(before, after),
  bulkJob: (_, { before, after }, dictionary) => jobEvents(before, after, dictionary),
  keyRing: (_, { before, after }, dictionary) => keyEvents(before, after, dictionary),
};

async function prospectEvents(table: Table, change: RowChange, dictionary: LoadDictionary): Promise<DomainEvent[]> {
  const before = change.before === undefined ? undefined : storedProspect(change.before);
  const after = storedProspect(change.after);
  const job = bulkJobOf(after);
  // The job that last changed the row makes no events for single prospects. A later write that does not raise the version keeps the job in
  // the row, but it changes no field that an event shows.
  if (job !== undefined && job.events !== "each") return [];
  const upcoming = await nextAppointment(table, after, Date.parse(after.updatedAt));
  return prospectEventsBetween(before, after, upcoming, await dictionary());
}

/** A prospect that an import creates makes no event, because the import makes one event for the whole file. */
function prospectEventsBetween(
  before: StoredProspect | undefined,
  after: StoredProspect,
  upcoming: StoredAppointment | undefined,
  dictionary: Dictionary,
): DomainEvent[] {
  const prospect = presentProspect(after, upcoming, dictionary);
  const job = bulkJobOf(after);
  const event = <Name extends ProspectEvent>(name: Name, data: z.input<(typeof catalogue)[Name]>): DomainEvent =>
    job === undefined
      ? eventOf(after, name, data)
      : { ...eventOf(after, name, { ...data, bulk: { jobId: job.jobId } }), isBulk: true };

  if (before === undefined) return after.importId === undefined ? [event("prospect.created", { prospect })] : [];
  if (after.deletedAt !== undefined) {
    return before.deletedAt === undefined ? [event("prospect.deleted", { prospect })] : [];
  }
  // Only the undo of a bulk job restores a deleted prospect. For subscribers, the prospect is new.
  if (before.deletedAt !== undefined) return [event("prospect.created", { prospect })];
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

/** Makes the event of a new note. A note that an import has created makes no event, and neither do later changes of a note. */
async function noteEvents(table: Table, change: RowChange, dictionary: LoadDictionary): Promise<DomainEvent[]> {
  const note = StoredNote.parse(change.after);
  if (change.before !== undefined || note.importId !== undefined) return [];
  const names = await dictionary();
  const prospect = await prospectOf(table, note, names);
  return [eventOf(note, "note.created", { note: presentNote(note, names), prospect })];
}

async function appointmentEvents(table: Table, change: RowChange, dictionary: LoadDictionary): Promise<DomainEvent[]> {
  const after = StoredAppointment.parse(change.after);
  const before = change.before === undefined ? undefined : StoredAppointment.parse(change.before);
  const name = appointmentEvent(before, after);
  if (name === undefined) return [];
  const names = await dictionary();
  const prospect = await prospectOf(table, after, names);
  return [eventOf(after, name, { appointment: presentAppointment(after, names), prospect })];
}

function appointmentEvent(before: StoredAppointment | undefined, after: StoredAppointment) {
  // A deletion moves the row to the key of deleted appointments. The stream reports this as a new row, so `before` is undefined.
  if (after.deletedAt !== undefined) return "appointment.cancelled";
  if (before === undefined) return after.importId === undefined ? "appointment.created" : undefined;
  if (before.version === after.version) return undefined;
  const cancelled = after.status === "cancelled" && before.status !== "cancelled";
  return cancelled ? "appointment.cancelled" : "appointment.updated";
}

/** Returns the prospect of a note or appointment at the time of publication, even if it is deleted. */
async function prospectOf(
  table: Table,
  { companyId, prospectId, updatedAt }: StoredNote | StoredAppointment,
  dictionary: Dictionary,
): Promise<Prospect> {
  const item = await table.get(keys.prospect(companyId, prospectId));
  if (item === undefined) throw new Error("a note or appointment without a prospect");
  const prospect = storedProspect(item);
  return presentProspect(prospect, await nextAppointment(table, prospect, Date.parse(updatedAt)), dictionary);
}

/** Only writes that create, change or delete the territory raise the row's version number, so other writes make no event. */
function territoryEvents(before: StoredTerritory | undefined, after: StoredTerritory): DomainEvent[] {
  if (before !== undefined && (before.deletedAt !== undefined || before.version === after.version)) return [];
  return [eventOf(after, territoryEvent(before, after), { territory: presentTerritory(after) })];
}

function territoryEvent(before: StoredTerritory | undefined, after: StoredTerritory) {
  // A deletion moves the row to the key of deleted territories. The stream reports this as a new row, so `before` is undefined.
  if (after.deletedAt !== undefined) return "territory.deleted";
  return before === undefined ? "territory.created" : "territory.updated";
}

/** Maximum number of the import's errors that an event contains. A delivery with its body must fit into one row of 400 KB. */
const IMPORT_ERRORS = 100;

/** Makes one event when an import is completed. A dry run makes none. */
function importEvents(before: unknown, after: unknown): DomainEvent[] {
  const row = StoredImport.parse(after);
  const wasCompleted = before !== undefined && StoredImport.parse(before).state === "completed";
  if (row.state !== "completed" || wasCompleted || row.dryRun) return [];
  const { id, imported, updated, skipped } = row;
  const errors = unpacked(RowFaults, row.errors).slice(0, IMPORT_ERRORS);
  return [eventOf({ ...row, version: 1 }, "prospect.import_completed", { id, imported, updated, skipped, errors })];
}

/** Makes one event when a bulk job ends. A job has no version, so the event always has version 1. Its time is the end of the job. */
async function jobEvents(before: unknown, after: unknown, dictionary: LoadDictionary): Promise<DomainEvent[]> {
  const job = StoredBulk.parse(after);
  const wasOpen = before === undefined || !hasEnded(StoredBulk.parse(before));
  if (!hasEnded(job) || !wasOpen || job.events === "none") return [];
  const row = { ...job, version: 1, updatedAt: job.endedAt ?? job.updatedAt };
  return [eventOf(row, "prospect.bulk_completed", { job: presentJob(job, await dictionary()) })];
}

/** Makes the events of changed API keys. A use of a key also changes the row, but not its version, so it makes no event. */
async function keyEvents(old: unknown, now: unknown, dictionary: LoadDictionary): Promise<DomainEvent[]> {
  const after = StoredKeyRing.parse(now);
  const before = old === undefined ? after : StoredKeyRing.parse(old);
  if (before.version === after.version) return [];
  const { users } = await dictionary();
  const account = users.get(after.userId);
  if (account === undefined) throw new Error("a key ring without a service account");
  const row = { ...after, id: account.id };
  return keyNotices(before.keys, after.keys, Date.parse(after.updatedAt)).map(({ what, key }) => {
    const { daysLeft = 0 } = key;
    const shown = presentKey(key, after, users.get(key.createdBy));
    const event = eventOf(row, `api_key.${what}`, { serviceAccount: summaryOf(account), key: shown, daysLeft });
    // One write can change several keys, so the id of the event contains the id of the key.
    return { ...event, id: `${event.id}-${key.id}` };
  });
}
