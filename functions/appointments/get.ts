/** GET /api/appointments/{id}: reads one appointment. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { getAppointment } from "#shared/prospects/appointments.ts";
import { Appointment } from "#shared/prospects/schema.ts";

export const handler = endpoint(
  { summary: "Get an appointment", allow: "everyone", scope: "prospects:read", path: IdPath, response: Appointment },
  ({ context, caller, path }) => getAppointment(context, caller, path.id),
);
