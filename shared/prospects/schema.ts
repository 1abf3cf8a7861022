/** The schemas of prospects, notes and appointments as the API shows them. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import { Address } from "#shared/prospects/address.ts";
import { CustomFields } from "#shared/prospects/custom-fields.ts";
import { appointmentFields } from "#shared/prospects/stored.ts";
import { StatusSummary, Tag } from "#shared/reference/schema.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";

export const Note = named(
  "Note",
  z.object({
    id: Id,
    prospectId: Id,
    body: z.string(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    occurredAt: z.optional(Timestamp),
    createdBy: z.nullable(UserSummary),
  }),
  "A note on a prospect.",
);
export type Note = z.infer<typeof Note>;

export const Appointment = named(
  "Appointment",
  z.object({ ...appointmentFields, assignedTo: z.nullable(UserSummary), createdBy: z.nullable(UserSummary) }),
  "An appointment with a prospect.",
);
export type Appointment = z.infer<typeof Appointment>;

/* @__PURE__ */ explain([Note], () => ({
  fields: { occurredAt: "When the note was written on a device that sent it later. Absent for every other note." },
}));
/* @__PURE__ */ explain([Appointment], () => ({
  fields: {
    status: "A change to `cancelled` cancels the appointment.",
    occurredAt: "When the last change was made on a device that sent it later. Absent after every other change.",
  },
}));

const ProspectTag = named("ProspectTag", z.object({ tag: Tag }), "A tag of a prospect.");

export const prospectFields = {
  id: Id,
  name: z.nullable(z.string()),
  phoneNumber: z.nullable(z.string()),
  secondaryPhoneNumber: z.nullable(z.string()),
  emailAddress: z.nullable(z.string()),
  lat: z.nullable(z.number()),
  lng: z.nullable(z.number()),
  source: z.nullable(z.string()),
  sourceId: z.nullable(z.string()),
  sourceCreatedAt: z.nullable(Timestamp),
  clientRecordId: z.optional(z.string()),
  customFieldData: z.nullable(CustomFields),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  address: z.nullable(Address),
  currentStatus: z.nullable(StatusSummary),
  assignedTo: z.nullable(UserSummary),
  tags: z.array(ProspectTag),
};

export const Prospect = named(
  "Prospect",
  z.object({ ...prospectFields, appointments: z.array(Appointment).check(z.maxLength(1)) }),
  "A prospect as lists show it, with the one soonest upcoming appointment.",
);
export type Prospect = z.infer<typeof Prospect>;

/* @__PURE__ */ explain([Prospect], () => ({
  fields: { appointments: "The soonest upcoming appointment that is scheduled, or an empty list." },
}));
