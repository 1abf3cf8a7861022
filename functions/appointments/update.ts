/** PATCH /api/appointments/{id}: changes an appointment. Fields that the request does not contain keep their values. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { updateAppointment } from "#shared/prospects/appointments.ts";
import { AppointmentPatch } from "#shared/prospects/input.ts";
import { Appointment } from "#shared/prospects/schema.ts";

export const handler = command(
  {
    summary: "Change an appointment",
    description: "Only sent fields change; null clears a field. The status `cancelled` cancels the appointment.",
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    body: AppointmentPatch,
    response: Appointment,
  },
  ({ context, caller, path, body }) => updateAppointment(context, caller, path.id, body),
);
