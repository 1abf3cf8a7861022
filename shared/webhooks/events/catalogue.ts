/** The events of the service and the shape of their `data`. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { ImportResult } from "#shared/jobs/import/schema.ts";
import { Appointment, Note, Prospect } from "#shared/prospects/schema.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { Id } from "#shared/schema.ts";
import { Territory } from "#shared/territories/territories.ts";

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

/** With what the event means, for those who subscribe to it. */
const told = <S extends z.ZodMiniType>(data: S, description: string): S => data.check(z.describe(description));

/** Event name -> schema of its `data`. */
export const catalogue = {
  "prospect.created": told(z.object({ prospect: Prospect }), "A prospect was made, with or without a status."),
  "prospect.updated": told(
    z.object({ prospect: Prospect, changedFields: z.array(ChangedField) }),
    "A prospect changed: `changedFields` says what of it.",
  ),
  "prospect.status_changed": told(
    z.object({
      prospect: Prospect,
      previousStatus: z.nullable(StatusSummary),
      newStatus: z.nullable(StatusSummary),
      statusHistoryId: z.nullable(Id),
      changedBy: z.nullable(UserSummary),
    }),
    "A prospect's status changed, or was cleared.",
  ),
  "prospect.assigned": told(
    z.object({
      prospect: Prospect,
      previousAssignee: z.nullable(UserSummary),
      newAssignee: z.nullable(UserSummary),
    }),
    "A prospect was given to another user, or to nobody.",
  ),
  "prospect.deleted": told(z.object({ prospect: Prospect }), "A prospect was deleted."),
  "prospect.import_completed": told(ImportResult, "A file was imported. Of many errors `errors` tells the first."),
  "territory.created": told(z.object({ territory: Territory }), "A territory was made."),
  "territory.updated": told(z.object({ territory: Territory }), "A territory changed."),
  "territory.deleted": told(z.object({ territory: Territory }), "A territory was deleted."),
  "note.created": told(z.object({ note: Note, prospect: Prospect }), "A note was written on a prospect."),
  "appointment.created": told(AppointmentData, "An appointment was made with a prospect."),
  "appointment.updated": told(AppointmentData, "An appointment changed."),
  "appointment.cancelled": told(AppointmentData, "An appointment was cancelled or deleted."),
  "webhook.test": told(
    z.object({ webhook: z.object({ id: Id, name: z.string() }) }),
    "A webhook was tried out. It goes to that webhook alone, and needs no registration.",
  ),
} as const;

export type EventName = keyof typeof catalogue;

/** Something that happened, as the table's stream tells it. The id is the same each time the stream repeats itself. */
export interface DomainEvent {
  readonly id: string;
  readonly event: EventName;
  readonly companyId: number;
  /** What it happened to, and which write of that row it was. */
  readonly recordId: number;
  readonly version: number;
  /** When the change was committed. */
  readonly createdAt: string;
  readonly data: unknown;
}

/** What a manual delivery tells: the prospect, and null for everything else that the event would tell. */
export function manualData(event: string, prospect: Prospect): Record<string, unknown> {
  const told = Object.entries(catalogue).find(([name]) => name === event)?.[1];
  const others = Object.keys(told?.shape ?? {}).map((field) => [field, null]);
  return { ...Object.fromEntries(others), prospect: Prospect.parse(prospect) };
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
  recordId: row.id,
  version: row.version,
  createdAt: row.updatedAt,
  data: catalogue[event].parse(data),
});
