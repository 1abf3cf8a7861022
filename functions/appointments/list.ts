/** GET /api/appointments: lists the company's appointments in a time range. */
import * as z from "zod/mini";
import { streamItems } from "#shared/http/streaming.ts";
import { CalendarQuery, listAppointments } from "#shared/prospects/calendar.ts";
import { Appointment } from "#shared/prospects/schema.ts";

export const handler = streamItems(
  {
    summary: "List appointments",
    description:
      "Appointments that start between `from` (default: now) and `to` (default: 31 days after `from`), soonest first. The range may span 366 days. A user who sees only own prospects gets only the appointments of these prospects.",
    allow: "everyone",
    scope: "prospects:read",
    query: CalendarQuery,
    response: z.array(Appointment),
  },
  ({ context, caller, query }) => listAppointments(context, caller, query),
);
