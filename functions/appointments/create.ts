/** POST /api/prospects/{id}/appointments: creates an appointment with a prospect. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import * as limits from "#shared/limits.ts";
import { createAppointment } from "#shared/prospects/appointments.ts";
import { NewAppointment } from "#shared/prospects/input.ts";
import { Appointment } from "#shared/prospects/schema.ts";

export const handler = command(
  {
    summary: "Make an appointment with a prospect",
    description: `\`endAt\` must not be before \`startAt\`. \`Location\` is the path below \`/api/appointments\`. A prospect may have ${limits.appointmentsPerProspect} appointments. Above that the answer is 409.`,
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    body: NewAppointment,
    status: 201,
    response: Appointment,
    collection: "/api/appointments",
  },
  ({ context, caller, path, body }) => createAppointment(context, caller, path.id, body),
);
