/** The rows of prospects, status changes, notes and appointments as the table stores them. */

import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import { Address } from "#shared/prospects/address.ts";
import { appointmentFields } from "#shared/prospects/schema.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { Id, Timestamp } from "#shared/schema.ts";

const count = z.int();
const sometimes = z.optional(Timestamp);

const statusChange = {
  id: Id,
  status: z.nullable(StatusSummary),
  previousStatus: z.nullable(StatusSummary),
  changedBy: Id,
  source: z.string(),
  createdAt: Timestamp,
  /** The version of the prospect after this change. It orders changes within one millisecond. */
  version: count,
};

/** The prospect's row holds the last status change. The next change moves it to a row of its own. */
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
  /** Counts the writes of this row. The next write has it as condition, and event ids contain it. */
  version: z.int(),
  /** Set for imported notes, which emit no events of their own. */
  importId: z.optional(z.string()),
});
export type StoredNote = z.infer<typeof StoredNote>;

export const StoredAppointment = z.object({
  ...appointmentFields,
  type: z.literal("appointment"),
  companyId: Id,
  assignedToUserId: z.nullable(Id),
  createdBy: z.nullable(Id),
  /** Counts the writes of this row. The next write has it as condition, and event ids contain it. */
  version: z.int(),
  /** The deleted row is kept: the event `appointment.cancelled` is made from it. */
  deletedAt: z.optional(Timestamp),
  importId: z.optional(z.string()),
});
export type StoredAppointment = z.infer<typeof StoredAppointment>;

/** Empty fields are not written: their names would take a seventh of a row, and reads are paid for by the byte. */
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
  /** A copy of the address row: a page of prospects reads no address rows. */
  address: unset(Address),
  statusId: unset(Id),
  lastStatusChange: unset(LastStatusChange),
  /** Number of changes before the last one. Each has a row of its own. */
  pastStatusChanges: z.optional(count),
  /** Copies of the soonest appointments as of the last write of an appointment (agenda.ts). */
  upcoming: list(StoredAppointment),
  /** Set if there may be more upcoming appointments: they start after the copies, and at this time at the latest. */
  moreUpcomingUntil: unset(Timestamp),
  /** The time in the agenda's key; set if there are appointments. None starts later. It never decreases. */
  agendaUntil: sometimes,
  assignedToUserId: unset(Id),
  assignedByUserId: unset(Id),
  tagIds: list(Id),
  source: unset(z.string()),
  sourceId: unset(z.string()),
  sourceCreatedAt: unset(Timestamp),
  /** JSON text: DynamoDB limits maps to 32 levels and numbers to 1e126. */
  customFieldData: unset(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: Id,
  updatedBy: Id,
  /** Counts the writes of this row. The next write has it as condition, and event ids contain it. */
  version: count,
  deletedAt: sometimes,
  /** Set for imported prospects: their insertion emits no event of its own. */
  importId: z.optional(z.string()),
});
export type StoredProspect = z.infer<typeof StoredProspect>;

/** The row without its key and without empty fields. */
export const prospectItem = (prospect: StoredProspect): Item =>
  Object.fromEntries(Object.entries(prospect).filter(([, value]) => !isUnset(value)));

const isUnset = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
