/** DELETE /api/appointments/{id}: takes an appointment out of every read. */
import { deleteAppointment } from "#shared/appointments/appointments.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";

export const handler = endpoint(
  {
    summary: "Delete an appointment",
    description: "Hides it at once from every read; receivers are told that it is cancelled.",
    tag: "Appointments",
    allow: "everyone",
    path: IdPath,
    status: 200,
    response: Deleted,
  },
  async ({ world, caller, path }) => {
    await deleteAppointment(world, caller, path.id);
    return { id: path.id };
  },
);
