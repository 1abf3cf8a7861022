/** The stored rows of prospects, status changes, notes and appointments. */

import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import { Address, formatted } from "#shared/prospects/address.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";

const count = z.int();
const sometimes = z.optional(Timestamp);

/**
 * The time at which a user made a change on a device that was offline. The service received the change later. Undefined if the client sent
 * no time.
 */
const occurredAt = { occurredAt: sometimes };

const statusChange = {
  id: Id,
  status: z.nullable(StatusSummary),
  previousStatus: z.nullable(StatusSummary),
  changedBy: Id,
  source: z.string(),
  createdAt: Timestamp,
  ...occurredAt,
  /** The version of the prospect after this change. It gives the order of changes in the same millisecond. */
  version: count,
};

/** The last status change is part of the prospect's row. The next change moves it to a separate row. */
export const LastStatusChange = z.object(statusChange);
export type LastStatusChange = z.infer<typeof LastStatusChange>;

export const StoredStatusChange = z.object({ ...statusChange, type: z.literal("history"), prospectId: Id });
export type StoredStatusChange = z.infer<typeof StoredStatusChange>;

export const StoredNote = z.object({
  type: z.literal("note"),
  id: Id,
  companyId: Id,
  prospectId: Id,
  body: z.string(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: z.nullable(Id),
  version: z.int(),
  ...occurredAt,
  /** The id of the import that created the note. The creation of imported notes causes no events. */
  importId: z.optional(z.string()),
});
export type StoredNote = z.infer<typeof StoredNote>;

export const AppointmentStatus = named(
  "AppointmentStatus",
  z.enum(["scheduled", "completed", "cancelled", "no_show"]),
  "How far an appointment has come.",
);

/** The fields that the API and the table have in common. */
export const appointmentFields = {
  id: Id,
  prospectId: Id,
  title: z.string(),
  startAt: Timestamp,
  endAt: z.nullable(Timestamp),
  allDay: z.boolean(),
  status: AppointmentStatus,
  location: z.nullable(z.string()),
  notes: z.nullable(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  ...occurredAt,
};

export const StoredAppointment = z.object({
  ...appointmentFields,
  type: z.literal("appointment"),
  companyId: Id,
  assignedToUserId: z.nullable(Id),
  createdBy: z.nullable(Id),
  version: z.int(),
  /** The time of the deletion. The row of a deleted appointment is kept, because the event `appointment.cancelled` is made from it. */
  deletedAt: z.optional(Timestamp),
  importId: z.optional(z.string()),
});
export type StoredAppointment = z.infer<typeof StoredAppointment>;

/**
 * A field that may be missing in the row and is then read as null. Empty fields are not stored, because their names would be a seventh of
 * a row, and DynamoDB charges reads by size.
 */
const unset = <S extends z.ZodMiniType>(schema: S) => z._default(z.nullable(schema), null);
const list = <S extends z.ZodMiniType>(schema: S) => z._default(z.array(schema), []);

/**
 * The webhook events of a bulk job. `summary`: one event at the end of the job. `each`: also the events of each change. `none`: no events.
 */
export const BulkEvents = z.enum(["summary", "each", "none"]);
export type BulkEvents = z.infer<typeof BulkEvents>;

/** The fields that a bulk job may write. A null in `deletedAt` means that the prospect is not deleted. */
export const BulkFields = z.object({
  statusId: z.optional(z.nullable(Id)),
  assignedToUserId: z.optional(z.nullable(Id)),
  assignedByUserId: z.optional(z.nullable(Id)),
  tagIds: z.optional(z.array(Id)),
  deletedAt: z.optional(z.nullable(Timestamp)),
});
export type BulkFields = z.infer<typeof BulkFields>;

/**
 * The last bulk job that changed a prospect, and the version of the prospect after this change. `before` and `after` are the fields that
 * the job wrote. If the job is interrupted and repeated, it recognizes its own write by this mark, even if users have changed the prospect
 * since.
 */
export const BulkMark = z.object({
  jobId: Id,
  version: count,
  events: BulkEvents,
  before: z.optional(BulkFields),
  after: z.optional(BulkFields),
});
export type BulkMark = z.infer<typeof BulkMark>;

export const StoredProspect = z.object({
  type: z.literal("prospect"),
  id: Id,
  companyId: Id,
  name: unset(z.string()),
  phoneNumber: unset(z.string()),
  secondaryPhoneNumber: unset(z.string()),
  emailAddress: unset(z.string()),
  lat: unset(z.number()),
  lng: unset(z.number()),
  /** A copy of the address, so that a list need not read address rows. */
  address: unset(Address),
  statusId: unset(Id),
  lastStatusChange: unset(LastStatusChange),
  /** Number of status changes before the last one. Each has a separate row. */
  pastStatusChanges: z.optional(count),
  /** Copies of the soonest upcoming appointments. They are updated when an appointment is written (see agenda.ts). */
  upcoming: list(StoredAppointment),
  /**
   * The latest start of the upcoming appointments that have no copy in this row, or a later time. They all start after the copies. Null if
   * every upcoming appointment has a copy.
   */
  moreUpcomingUntil: unset(Timestamp),
  /**
   * The time in the key of the agenda (see agenda.ts). No appointment starts later. Undefined if the prospect has no appointments. The time
   * never decreases while the prospect has appointments.
   */
  agendaUntil: sometimes,
  /**
   * The time of the last change of an appointment of the prospect, in milliseconds since 1970. `updatedAt` does not tell it, because a
   * change of an appointment leaves `updatedAt` as it is.
   */
  appointmentsChangedAt: z.optional(count),
  assignedToUserId: unset(Id),
  assignedByUserId: unset(Id),
  /** The time since which the prospect is assigned to its present assignee. Undefined if the prospect was never reassigned. */
  assignedAt: sometimes,
  /**
   * The past assignments: the beginning of the first one, and then pairs of a user's id and the length of the assignment, all in
   * milliseconds. Each begins when the one before it ends. assignments.ts explains ids below 1.
   */
  pastAssignments: z.optional(z.array(count)),
  tagIds: list(Id),
  source: unset(z.string()),
  sourceId: unset(z.string()),
  sourceCreatedAt: unset(Timestamp),
  /** JSON text. A DynamoDB map would limit the nesting to 32 levels and numbers to 1e126. */
  customFieldData: unset(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: Id,
  updatedBy: Id,
  /**
   * Increases by 1 with each change of the prospect or its appointments, but not with changes of notes. It is used for optimistic locking
   * and for the ids of events.
   */
  version: count,
  deletedAt: sometimes,
  /** The id that the client gave to the prospect when it created it. */
  clientRecordId: z.optional(z.string()),
  /**
   * Id of the last import that changed this prospect. When the import is repeated, it recognizes the id and does not change the prospect
   * again.
   */
  changedByImport: z.optional(z.string()),
  /** The last change of this prospect by a bulk job. Use `bulkJobOf` to find out whether the job has written the current version. */
  bulk: z.optional(BulkMark),
  /** The id of the import that created the prospect. Creating an imported prospect makes no event. */
  importId: z.optional(z.string()),
});
export type StoredProspect = z.infer<typeof StoredProspect>;

/** The row of a listed prospect. Lists do not need the import that created it. */
export type ListedRow = Omit<StoredProspect, "importId">;

/**
 * Returns the bulk job that wrote this version of the prospect. Returns undefined if another write has made this version. A later write may
 * keep the mark in the row, because the mark names the version to which it belongs.
 */
export const bulkJobOf = ({ bulk, version }: Pick<StoredProspect, "bulk" | "version">): BulkMark | undefined =>
  bulk?.version === version ? bulk : undefined;

/** The fields that conditions use, and the fields that identify the row. Each is a separate attribute of the row. */
const columns = {
  type: true,
  id: true,
  companyId: true,
  assignedToUserId: true,
  version: true,
  deletedAt: true,
  importId: true,
} as const;

/** The attributes of a row. `fields` contains all other fields as JSON text. */
const Columns = z.extend(z.pick(StoredProspect, columns), { fields: z.string() });

/**
 * Attributes of a prospect's row that each change of a note sets: a count, and a time in milliseconds since 1970. A new version of the
 * row has neither of them.
 */
export const notesAttributes = ["notesVersion", "notesChangedAt"] as const;

/**
 * Returns the row without its key. Most fields are JSON text in the attribute `fields`, because the SDK needs much more time for twenty
 * attributes than for one (docs/decisions/2026-11-21-lists-from-the-index.md). Empty fields are left out.
 */
export function prospectItem(prospect: StoredProspect): Item {
  const { type, id, companyId, assignedToUserId, version, deletedAt, importId, address, ...fields } = prospect;
  return {
    ...filled({ type, id, companyId, assignedToUserId, version, deletedAt, importId }),
    fields: JSON.stringify(filled({ ...fields, address: address === null ? null : packedAddress(address) })),
  };
}

/** Returns the address for the row. `formattedAddress` is left out if `formatted` computes the same text from the other fields. */
function packedAddress({ formattedAddress, ...lines }: Address): Item {
  return { ...filled(lines), ...(formattedAddress !== formatted(lines) && { formattedAddress }) };
}

const filled = (fields: object): Item =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isUnset(value)));

const isUnset = (value: unknown): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

/** Parses a row and validates all its fields. Throws if the row is missing. */
export const storedProspect = (item: Item | undefined): StoredProspect =>
  StoredProspect.parse(item === undefined ? item : pageProspect(item));

/**
 * Parses a row of a page. It validates the separate attributes, and only parses the JSON text in `fields`, which this service itself has
 * written. The validation of all fields would take a sixth of a list's processor time.
 */
export function pageProspect(item: Item): StoredProspect {
  // Parsing with the schema takes longer than parsing `fields`. The schema is therefore used only for deleted rows, and for damaged rows,
  // whose faults it reports.
  const separate = isUsual(item) ? item : Columns.parse(item);
  const { fields, type, id, companyId, assignedToUserId = null, version, deletedAt, importId } = separate;
  const filledFields = PackedFields.parse(JSON.parse(fields));
  const address = filledFields.address ? unpackedAddress(filledFields.address) : null;
  const optional = { ...(deletedAt !== undefined && { deletedAt }), ...(importId !== undefined && { importId }) };
  return { ...emptyFields, ...filledFields, address, type, id, companyId, assignedToUserId, version, ...optional };
}

/** Checks the separate attributes of a row that is not deleted. Each row that passes also fits the schema `Columns`. */
const isUsual = (item: Item): item is Item & z.infer<typeof Columns> =>
  item.type === "prospect" &&
  typeof item.fields === "string" &&
  (item.importId === undefined || typeof item.importId === "string") &&
  item.deletedAt === undefined &&
  [item.id, item.companyId, item.version, item.assignedToUserId ?? 1].every(
    (n) => Number.isSafeInteger(n) && Number(n) > 0,
  );

function unpackedAddress({
  id,
  address1,
  address2 = null,
  city,
  state,
  zip,
  formattedAddress,
}: PackedAddress): Address {
  const lines = { id, address1, address2, city, state, zip };
  return { ...lines, formattedAddress: formattedAddress === undefined ? formatted(lines) : formattedAddress };
}

type PackedAddress = Omit<Address, "address2" | "formattedAddress"> & Partial<Address>;

const emptyFields = {
  name: null,
  phoneNumber: null,
  secondaryPhoneNumber: null,
  emailAddress: null,
  lat: null,
  lng: null,
  statusId: null,
  lastStatusChange: null,
  upcoming: [],
  moreUpcomingUntil: null,
  assignedByUserId: null,
  tagIds: [],
  source: null,
  sourceId: null,
  sourceCreatedAt: null,
  customFieldData: null,
} satisfies Partial<StoredProspect>;

type PackedFields = Omit<StoredProspect, keyof typeof columns | keyof typeof emptyFields | "address"> &
  Partial<Pick<StoredProspect, keyof typeof emptyFields>> & { readonly address?: PackedAddress };

const PackedFields = z.custom<PackedFields>((value) => typeof value === "object" && value !== null);
