/** The stored rows of prospects, status changes, notes and appointments. */
import * as z from "zod/mini";
import type { Ahead } from "#shared/company-index/record.ts";
import type { Item } from "#shared/db/expression.ts";
import { Address, formatted } from "#shared/prospects/address.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";

const count = z.int();
const sometimes = z.optional(Timestamp);

/** When a user made a change on an offline device. Undefined if the client sent no time. */
const occurredAt = { occurredAt: sometimes };

/** The fields that the API and the table have in common. The API shows a user instead of the id `changedBy`. */
export const statusChangeFields = {
  id: Id,
  status: z.nullable(StatusSummary),
  previousStatus: z.nullable(StatusSummary),
  changedBy: Id,
  source: z.string(),
  createdAt: Timestamp,
  ...occurredAt,
};

/** `version` is the version of the prospect after the change. It orders changes in the same millisecond. */
const statusChange = { ...statusChangeFields, version: count };

/** The last status change is part of the prospect's row. The next one moves it to a row of its own. */
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
  /** The import that created the note. Such a creation makes no event. */
  importId: z.optional(z.string()),
});
export type StoredNote = z.infer<typeof StoredNote>;

export const AppointmentStatus = named(
  "AppointmentStatus",
  z.enum(["scheduled", "completed", "cancelled", "no_show"]),
  "How far an appointment has come.",
);

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
  /** The event `appointment.cancelled` is made from the row of the deleted appointment. */
  deletedAt: z.optional(Timestamp),
  importId: z.optional(z.string()),
});
export type StoredAppointment = z.infer<typeof StoredAppointment>;

/** Null if the row lacks the field. Empty fields are not stored, because their names would be a seventh of a row. */
const unset = <S extends z.ZodMiniType>(schema: S) => z._default(z.nullable(schema), null);
const list = <S extends z.ZodMiniType>(schema: S) => z._default(z.array(schema), []);

/** `summary`: one event at the end of a bulk job. `each`: also the events of each change. */
export const BulkEvents = z.enum(["summary", "each", "none"]);
export type BulkEvents = z.infer<typeof BulkEvents>;

/** A null in `deletedAt` means that the prospect is not deleted. */
export const BulkFields = z.object({
  statusId: z.optional(z.nullable(Id)),
  assignedToUserId: z.optional(z.nullable(Id)),
  assignedByUserId: z.optional(z.nullable(Id)),
  tagIds: z.optional(z.array(Id)),
  deletedAt: z.optional(z.nullable(Timestamp)),
});
export type BulkFields = z.infer<typeof BulkFields>;

/**
 * The last bulk job that changed a prospect, the version after this change, and the written fields. A repeated job recognises its own write
 * by this mark, even if users have changed the prospect since.
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
  /** A copy of the address, so that lists need not read the row of the address. */
  address: unset(Address),
  statusId: unset(Id),
  lastStatusChange: unset(LastStatusChange),
  pastStatusChanges: z.optional(count),
  /** Copies of the soonest upcoming appointments (see agenda.ts). */
  upcoming: list(StoredAppointment),
  /** The other upcoming appointments, soonest first: id, start in milliseconds since 1970, and the ids of author and assignee, or 0. */
  later: list(z.tuple([Id, z.int(), count, count])),
  /** The time in the key of the agenda (see agenda.ts). */
  agendaUntil: sometimes,
  /** Number of appointments. */
  appointments: z.optional(count),
  /** Milliseconds since 1970. A change of an appointment does not change `updatedAt`. */
  appointmentsChangedAt: z.optional(count),
  assignedToUserId: unset(Id),
  assignedByUserId: unset(Id),
  /** Undefined if the prospect was never reassigned. */
  assignedAt: sometimes,
  /** The begin of the first past assignment, and then pairs of a user's id and a duration, in milliseconds (see assignments.ts). */
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
  /** Increases with each change of the prospect or its appointments, but not of its notes. Ids of events contain it. */
  version: count,
  deletedAt: sometimes,
  clientRecordId: z.optional(z.string()),
  /** The last import that changed this prospect. A repetition of this import does not change the prospect again. */
  changedByImport: z.optional(z.string()),
  bulk: z.optional(BulkMark),
  /** The import that created the prospect. Such a creation makes no event. */
  importId: z.optional(z.string()),
});
export type StoredProspect = z.infer<typeof StoredProspect>;

export type Later = StoredProspect["later"][number];

export const laterOf = ({ id, startAt, createdBy, assignedToUserId: assignedTo }: StoredAppointment): Later => {
  return [id, Date.parse(startAt), createdBy ?? 0, assignedTo ?? 0];
};

/** Returns all upcoming appointments, soonest first. */
export const aheadOf = ({ upcoming, later }: Pick<StoredProspect, "upcoming" | "later">): Ahead[] =>
  [...upcoming.map(laterOf), ...later].map(([, ...ahead]) => ahead);

/** A row as lists read it: without the id of the import that created the prospect, which no list needs. */
export type ListedRow = Omit<StoredProspect, "importId">;

/** Returns the mark of the bulk job that made the row's present version. Other writes may keep an older mark in the row. */
export const bulkJobOf = ({ bulk, version }: Pick<StoredProspect, "bulk" | "version">): BulkMark | undefined =>
  bulk?.version === version ? bulk : undefined;

/** The fields with attributes of their own: those that identify the row, and those that conditions use. */
const columns = {
  type: true,
  id: true,
  companyId: true,
  assignedToUserId: true,
  version: true,
  deletedAt: true,
  importId: true,
} as const;

/** `fields` has all other fields as JSON text. */
const Columns = z.extend(z.pick(StoredProspect, columns), { fields: z.string() });

/** Each change of a note increases `notesVersion` and sets `notesChangedAt` in the prospect's row. A new version of the row has neither. */
export const notesAttributes = ["notesVersion", "notesChangedAt"] as const;

/**
 * Returns the row without its key. Most fields are JSON text in the attribute `fields`, because the SDK needs much more time for twenty
 * attributes than for one (docs/decisions/2026-11-21-lists-from-the-index.md).
 */
export function prospectItem(prospect: StoredProspect): Item {
  const { type, id, companyId, assignedToUserId, version, deletedAt, importId, address, ...fields } = prospect;
  return {
    ...filled({ type, id, companyId, assignedToUserId, version, deletedAt, importId }),
    fields: JSON.stringify(filled({ ...fields, address: address === null ? null : packedAddress(address) })),
  };
}

/** Omits `formattedAddress` if `formatted` computes the same text from the other fields. */
function packedAddress({ formattedAddress, ...lines }: Address): Item {
  return { ...filled(lines), ...(formattedAddress !== formatted(lines) && { formattedAddress }) };
}

const filled = (fields: object): Item =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isUnset(value)));

const isUnset = (value: unknown): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

export const storedProspect = (item: Item | undefined): StoredProspect =>
  StoredProspect.parse(item === undefined ? item : pageProspect(item));

/** Does not validate the JSON text in `fields`, which would take a sixth of a list's processor time. */
export function pageProspect(item: Item): StoredProspect {
  // The schema is slow, but reports the faults of a damaged row.
  const separate = isUsual(item) ? item : Columns.parse(item);
  const { fields, type, id, companyId, assignedToUserId = null, version, deletedAt, importId } = separate;
  const filledFields = PackedFields.parse(JSON.parse(fields));
  const address = filledFields.address ? unpackedAddress(filledFields.address) : null;
  const optional = { ...(deletedAt !== undefined && { deletedAt }), ...(importId !== undefined && { importId }) };
  return { ...emptyFields, ...filledFields, address, type, id, companyId, assignedToUserId, version, ...optional };
}

/** True for a row that fits the schema `Columns` and is not deleted. Much faster than the schema. */
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
  later: [],
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
