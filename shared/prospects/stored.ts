/** The stored rows of prospects, status changes, notes and appointments. */

import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import { Address } from "#shared/prospects/address.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";

const count = z.int();
const sometimes = z.optional(Timestamp);

const statusChange = {
  id: Id,
  status: z.nullable(StatusSummary),
  previousStatus: z.nullable(StatusSummary),
  changedBy: Id,
  source: z.string(),
  createdAt: Timestamp,
  /** The version of the prospect after this change. It determines the order of changes in the same millisecond. */
  version: count,
};

/** The last status change is part of the prospect's row. The next status change moves it to a separate row. */
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
  /** The id of the import, only for imported notes. They emit no events. */
  importId: z.optional(z.string()),
});
export type StoredNote = z.infer<typeof StoredNote>;

export const AppointmentStatus = named(
  "AppointmentStatus",
  z.enum(["scheduled", "completed", "cancelled", "no_show"]),
  "How far an appointment has come.",
);

/** Fields that both the API and the table have. */
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
};

export const StoredAppointment = z.object({
  ...appointmentFields,
  type: z.literal("appointment"),
  companyId: Id,
  assignedToUserId: z.nullable(Id),
  createdBy: z.nullable(Id),
  version: z.int(),
  /** The row is kept after the deletion, because the event `appointment.cancelled` is made from it. */
  deletedAt: z.optional(Timestamp),
  importId: z.optional(z.string()),
});
export type StoredAppointment = z.infer<typeof StoredAppointment>;

/**
 * A field that is null if the row does not contain it. Empty fields are not stored, because their names would be a seventh of a row, and
 * DynamoDB charges reads by size.
 */
const unset = <S extends z.ZodMiniType>(schema: S) => z._default(z.nullable(schema), null);
const list = <S extends z.ZodMiniType>(schema: S) => z._default(z.array(schema), []);

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
  /** A copy of the address row, so that a list reads no address rows. */
  address: unset(Address),
  statusId: unset(Id),
  lastStatusChange: unset(LastStatusChange),
  /** Number of status changes before the last one. Each has a separate row. */
  pastStatusChanges: z.optional(count),
  /** Copies of the soonest appointments. They are renewed when an appointment is written (see agenda.ts). */
  upcoming: list(StoredAppointment),
  /**
   * Set if the prospect may have more upcoming appointments than the copies. They start after the copies and at the latest at this time.
   */
  moreUpcomingUntil: unset(Timestamp),
  /**
   * The time in the key of the agenda row (see agenda.ts). No appointment starts later, and the time never decreases. Undefined without
   * appointments.
   */
  agendaUntil: sometimes,
  assignedToUserId: unset(Id),
  assignedByUserId: unset(Id),
  tagIds: list(Id),
  source: unset(z.string()),
  sourceId: unset(z.string()),
  sourceCreatedAt: unset(Timestamp),
  /** JSON text, because DynamoDB limits nesting to 32 levels and numbers to 1e126. */
  customFieldData: unset(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: Id,
  updatedBy: Id,
  /** Number of writes of this row, for optimistic locking and for event ids. */
  version: count,
  deletedAt: sometimes,
  /** The id of the import, only for imported prospects. Their insert emits no event. */
  importId: z.optional(z.string()),
});
export type StoredProspect = z.infer<typeof StoredProspect>;

/** Omits empty fields. */
export const prospectItem = (prospect: StoredProspect): Item =>
  Object.fromEntries(Object.entries(prospect).filter(([, value]) => !isUnset(value)));

const isUnset = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
