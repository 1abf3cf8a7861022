/** Prospects and their status history as the table holds them. */

import * as z from "zod/mini";
import type { Item } from "#shared/db/item.ts";
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
  /** Version of the prospect that this change made: exact order within one millisecond. */
  version: count,
};

/** The last status change stands in the prospect's row. The next one moves it into a row of its own. */
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
  /** Counts the writes of this row: condition of the next one, and part of its events' ids. */
  version: z.int(),
  /** Set when the note came with an import: it fires no event of its own. */
  importId: z.optional(z.string()),
});
export type StoredNote = z.infer<typeof StoredNote>;

export const StoredAppointment = z.object({
  ...appointmentFields,
  type: z.literal("appointment"),
  companyId: Id,
  assignedToUserId: z.nullable(Id),
  createdBy: z.nullable(Id),
  /** Counts the writes of this row: condition of the next one, and part of its events' ids. */
  version: z.int(),
  /** The row stays: its last change is what the cancellation is told from. */
  deletedAt: z.optional(Timestamp),
  importId: z.optional(z.string()),
});
export type StoredAppointment = z.infer<typeof StoredAppointment>;

/** What is not set is not written: names of empty fields would be a seventh of a row, and a page pays for its rows by the byte. */
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
  /** A copy of the address row, so that a page of prospects needs no second look-up. */
  address: unset(Address),
  statusId: unset(Id),
  lastStatusChange: unset(LastStatusChange),
  /** How many came before the last one: each has a row. */
  pastStatusChanges: z.optional(count),
  /** Scheduled appointments that were to come at the last write of one, soonest first; `upcoming.ts` says which. */
  upcoming: list(StoredAppointment),
  /** There may be more of them, all later than these; none is later than this. */
  moreUpcomingUntil: unset(Timestamp),
  /** Set where there are appointments: none starts later. It never goes back, and is part of the key of their agenda. */
  agendaUntil: sometimes,
  assignedToUserId: unset(Id),
  assignedByUserId: unset(Id),
  tagIds: list(Id),
  source: unset(z.string()),
  sourceId: unset(z.string()),
  sourceCreatedAt: unset(Timestamp),
  /** JSON text: the table's own maps end at 32 levels and its numbers at 1e126. */
  customFieldData: unset(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: Id,
  updatedBy: Id,
  /** Counts the writes of this row: condition of the next one, and part of its events' ids. */
  version: count,
  deletedAt: sometimes,
  /** Set by an import: the insertion of the row fires no event of its own. */
  importId: z.optional(z.string()),
});
export type StoredProspect = z.infer<typeof StoredProspect>;

/** The row as the table holds it, without its key. */
export const prospectItem = (prospect: StoredProspect): Item =>
  Object.fromEntries(Object.entries(prospect).filter(([, value]) => !isUnset(value)));

const isUnset = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
