/** Appointments that users make with prospects. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { limits } from "#shared/limits.ts";
import { Assignees, dateBound } from "#shared/prospects/filter.ts";
import { Id, InstantInput, named, Timestamp, text } from "#shared/schema.ts";

export const AppointmentStatus = z.enum(["scheduled", "completed", "cancelled", "no_show"]);

const fields = {
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

export const Appointment = named(
  "Appointment",
  z.object({ ...fields, assignedTo: z.nullable(UserSummary), createdBy: z.nullable(UserSummary) }),
  "An appointment with a prospect.",
);
export type Appointment = z.infer<typeof Appointment>;

const clearable = <S extends z.ZodMiniType>(schema: S) => z.optional(z.nullable(schema));
const Title = text(limits.appointmentTitle, 1);

/** An end before the start is refused by the write, which knows both. */
const input = {
  endAt: clearable(InstantInput),
  allDay: z.optional(z.boolean()),
  status: z.optional(AppointmentStatus),
  location: clearable(text(limits.appointmentLocation)),
  notes: clearable(text(limits.appointmentNotes)),
  assignedToUserId: clearable(Id),
};

export const NewAppointment = named(
  "NewAppointment",
  z.object({ title: Title, startAt: InstantInput, ...input }),
  "A new appointment. `assignedToUserId` is the prospect's assignee, or else the caller, when it is not given.",
);
export type NewAppointment = z.output<typeof NewAppointment>;

export const AppointmentPatch = named(
  "AppointmentPatch",
  z.object({ title: z.optional(Title), startAt: z.optional(InstantInput), ...input }),
);
export type AppointmentPatch = z.output<typeof AppointmentPatch>;

export const CalendarQuery = z.object({
  from: z.optional(dateBound("start")),
  to: z.optional(dateBound("end")),
  assignedToUserId: z.optional(Assignees),
});
export type CalendarQuery = z.output<typeof CalendarQuery>;

export const StoredAppointment = z.object({
  ...fields,
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
