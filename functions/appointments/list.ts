/** GET /api/appointments: the company's calendar in a range of time. */
import * as z from "zod/mini";
import { streamItems } from "#shared/http/stream-endpoint.ts";
import { CalendarQuery, listAppointments } from "#shared/prospects/calendar.ts";
import { Appointment } from "#shared/prospects/schema.ts";

export const handler = streamItems(
  {
    summary: "List appointments",
    description:
      "Those that start from `from` (default: now) to `to` (default: 31 days after `from`), soonest first; at most 366 days. A user who sees only own prospects gets their appointments only.",
    tag: "Appointments",
    allow: "everyone",
    query: CalendarQuery,
    status: 200,
    response: z.array(Appointment),
  },
  ({ context, caller, query }) => listAppointments(context, caller, query),
);
