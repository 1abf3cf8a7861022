/** GET /api/appointments/{id}: one appointment. */
import { getAppointment } from "#shared/appointments/appointments.ts";
import { Appointment } from "#shared/appointments/schema.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";

export const handler = endpoint(
  {
    summary: "Get an appointment",
    tag: "Appointments",
    allow: "everyone",
    path: IdPath,
    status: 200,
    response: Appointment,
  },
  ({ world, caller, path }) => getAppointment(world, caller, path.id),
);
