/** DELETE /api/appointments/{id}: deletes an appointment. The row stays in the table, but no request returns the appointment. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteAppointment } from "#shared/prospects/appointments.ts";

export const handler = command(
  {
    summary: "Delete an appointment",
    description: "No later request returns the appointment. Emits `appointment.cancelled`.",
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deleteAppointment(context, caller, path.id),
);
