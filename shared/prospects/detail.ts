/** The schema of a single prospect. Lists show less of it. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { Appointment, Note, prospectFields } from "#shared/prospects/schema.ts";
import { statusChangeFields } from "#shared/prospects/stored.ts";
import { named } from "#shared/schema.ts";

export const StatusChange = named(
  "StatusChange",
  z.object({ ...statusChangeFields, changedBy: z.nullable(UserSummary) }),
  "One entry of a prospect's status history: label and colour as they were then.",
);
export type StatusChange = z.infer<typeof StatusChange>;

/* @__PURE__ */ explain([StatusChange], () => ({
  fields: {
    status: "The new status with its label at that time; null if the status was cleared.",
    previousStatus: "The former status with its label at that time; null if there was none.",
    source: "How the change came to the service; `api` by default.",
    occurredAt: "When the change was made on a device that sent it later. Absent for every other change.",
  },
}));

export const ProspectDetail = named(
  "ProspectDetail",
  z.object({
    ...prospectFields,
    notes: z.array(Note).check(z.maxLength(limits.notesInDetail)),
    appointments: z.array(Appointment),
    statusHistory: z.array(StatusChange),
  }),
  "A prospect with its 5 newest notes, all appointments (soonest first) and its complete status history (newest first).",
);
export type ProspectDetail = z.infer<typeof ProspectDetail>;

/* @__PURE__ */ explain([ProspectDetail], () => ({
  fields: {
    appointments: "All appointments, soonest first.",
    notes: `The ${limits.notesInDetail} newest notes, newest first.`,
    statusHistory: "Every change of status, newest first.",
  },
}));
