/** Prospects and their status history as the table holds them. */

import * as z from "zod/mini";
import { Address } from "#shared/addresses/schema.ts";
import { StoredAppointment } from "#shared/appointments/schema.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { StatusSummary } from "#shared/statuses/schema.ts";

const statusChange = {
  id: Id,
  status: z.nullable(StatusSummary),
  previousStatus: z.nullable(StatusSummary),
  changedBy: Id,
  source: z.string(),
  createdAt: Timestamp,
  /** Version of the prospect that this change made: exact order within one millisecond. */
  version: z.int(),
};

/** The last status change stands in the prospect's row. The next one moves it into a row of its own. */
export const LastStatusChange = z.object(statusChange);
export type LastStatusChange = z.infer<typeof LastStatusChange>;

export const StoredStatusChange = z.object({ ...statusChange, type: z.literal("history"), prospectId: Id });
export type StoredStatusChange = z.infer<typeof StoredStatusChange>;

export const StoredProspect = z.object({
  type: z.literal("prospect"),
  id: Id,
  companyId: Id,
  name: z.nullable(z.string()),
  phoneNumber: z.nullable(z.string()),
  secondaryPhoneNumber: z.nullable(z.string()),
  emailAddress: z.nullable(z.string()),
  lat: z.nullable(z.number()),
  lng: z.nullable(z.number()),
  /** A copy of the address row, so that a page of prospects needs no second look-up. */
  address: z.nullable(Address),
  statusId: z.nullable(Id),
  lastStatusChange: z.nullable(LastStatusChange),
  /** Scheduled appointments that were to come at the last write of one, soonest first; `upcoming.ts` says which. */
  upcoming: z.array(StoredAppointment),
  /** There are more of them than stand here. */
  hasMoreUpcoming: z.boolean(),
  assignedToUserId: z.nullable(Id),
  assignedByUserId: z.nullable(Id),
  tagIds: z.array(Id),
  source: z.nullable(z.string()),
  sourceId: z.nullable(z.string()),
  sourceCreatedAt: z.nullable(Timestamp),
  /** JSON text: the table's own maps end at 32 levels and its numbers at 1e126. */
  customFieldData: z.nullable(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: Id,
  updatedBy: Id,
  /** Counts the writes of this row: condition of the next one, and part of its events' ids. */
  version: z.int(),
  deletedAt: z.optional(Timestamp),
  /** Set by an import: the insertion of the row fires no event of its own. */
  importId: z.optional(z.string()),
});
export type StoredProspect = z.infer<typeof StoredProspect>;
