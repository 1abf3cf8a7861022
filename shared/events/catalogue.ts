/** The events of the service and the shape of their `data`. */
import * as z from "zod/mini";
import { Appointment } from "#shared/appointments/schema.ts";
import { ImportResult } from "#shared/imports/schema.ts";
import { Note } from "#shared/notes/schema.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { Id } from "#shared/schema.ts";
import { StatusSummary } from "#shared/statuses/schema.ts";
import { Territory } from "#shared/territories/schema.ts";
import { UserSummary } from "#shared/users/schema.ts";

/** What a change of a prospect is called in `changedFields`. */
export const ChangedField = z.enum([
  "name",
  "phoneNumber",
  "secondaryPhoneNumber",
  "emailAddress",
  "lat",
  "lng",
  "address",
  "currentStatus",
  "assignedTo",
  "tags",
  "source",
  "sourceId",
  "customFieldData",
]);
export type ChangedField = z.infer<typeof ChangedField>;

const AppointmentData = z.object({ appointment: Appointment, prospect: Prospect });

/** Event name -> schema of its `data`. */
export const catalogue = {
  "prospect.created": z.object({ prospect: Prospect }),
  "prospect.updated": z.object({ prospect: Prospect, changedFields: z.array(ChangedField) }),
  "prospect.status_changed": z.object({
    prospect: Prospect,
    previousStatus: z.nullable(StatusSummary),
    newStatus: z.nullable(StatusSummary),
    statusHistoryId: z.nullable(Id),
    changedBy: z.nullable(UserSummary),
  }),
  "prospect.assigned": z.object({
    prospect: Prospect,
    previousAssignee: z.nullable(UserSummary),
    newAssignee: z.nullable(UserSummary),
  }),
  "prospect.deleted": z.object({ prospect: Prospect }),
  /** Of many errors the first. */
  "prospect.import_completed": ImportResult,
  "territory.created": z.object({ territory: Territory }),
  "territory.updated": z.object({ territory: Territory }),
  "territory.deleted": z.object({ territory: Territory }),
  "note.created": z.object({ note: Note, prospect: Prospect }),
  "appointment.created": AppointmentData,
  "appointment.updated": AppointmentData,
  "appointment.cancelled": AppointmentData,
} as const;

export type EventName = keyof typeof catalogue;

/** Something that happened, as the table's stream tells it. The id is the same each time the stream repeats itself. */
export interface DomainEvent {
  readonly id: string;
  readonly event: EventName;
  readonly companyId: number;
  /** When the change was committed. */
  readonly createdAt: string;
  readonly data: unknown;
}

/** What a write of a row that counts its versions meant. */
export const eventOf = <Name extends EventName>(
  row: { readonly id: number; readonly version: number; readonly companyId: number; readonly updatedAt: string },
  event: Name,
  data: z.input<(typeof catalogue)[Name]>,
): DomainEvent => ({
  id: `${row.id}-${row.version}-${event}`,
  event,
  companyId: row.companyId,
  createdAt: row.updatedAt,
  data: catalogue[event].parse(data),
});
