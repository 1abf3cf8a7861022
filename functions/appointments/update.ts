/** PATCH /api/appointments/{id}: changes the fields that are sent. */
import { updateAppointment } from "#shared/appointments/appointments.ts";
import { Appointment, AppointmentPatch } from "#shared/appointments/schema.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";

export const handler = endpoint(
  {
    summary: "Change an appointment",
    description: "Only sent fields change; null clears. A status that becomes `cancelled` cancels the appointment.",
    tag: "Appointments",
    allow: "everyone",
    path: IdPath,
    body: AppointmentPatch,
    status: 200,
    response: Appointment,
  },
  ({ world, caller, path, body }) => updateAppointment(world, caller, path.id, body),
);
