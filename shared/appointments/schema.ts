/** Appointments that users make with prospects. */
import * as z from "zod/mini";
import { Id, named, Timestamp } from "#shared/schema.ts";
import { UserSummary } from "#shared/users/schema.ts";

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

export const StoredAppointment = z.object({
  ...fields,
  type: z.literal("appointment"),
  assignedToUserId: z.nullable(Id),
  createdBy: z.nullable(Id),
  importId: z.optional(z.string()),
});
export type StoredAppointment = z.infer<typeof StoredAppointment>;
