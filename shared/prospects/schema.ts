/** Prospects: homes and businesses being canvassed, as the interface shows them and as it takes them. */

import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { limits } from "#shared/limits.ts";
import { Address, NewAddress } from "#shared/prospects/address-schema.ts";
import { Appointment } from "#shared/prospects/appointment-schema.ts";
import { CustomFields } from "#shared/prospects/custom-fields.ts";
import { Note } from "#shared/prospects/note-schema.ts";
import { StatusSummary } from "#shared/reference/status-schema.ts";
import { Tag } from "#shared/reference/tag-schema.ts";
import { degrees, Email, Id, InstantInput, named, Timestamp, text } from "#shared/schema.ts";

const listItem = {
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
  customFieldData: z.nullable(CustomFields),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  address: z.nullable(Address),
  currentStatus: z.nullable(StatusSummary),
  assignedTo: z.nullable(UserSummary),
  tags: z.array(z.object({ tag: Tag })),
};

export const Prospect = named(
  "Prospect",
  z.object({ ...listItem, appointments: z.array(Appointment).check(z.maxLength(1)) }),
  "A prospect as lists show it, with the one soonest upcoming appointment.",
);
export type Prospect = z.infer<typeof Prospect>;

export const StatusChange = named(
  "StatusChange",
  z.object({
    id: Id,
    status: z.nullable(StatusSummary),
    previousStatus: z.nullable(StatusSummary),
    changedBy: z.nullable(UserSummary),
    source: z.string(),
    createdAt: Timestamp,
  }),
  "One entry of a prospect's status history: label and colour as they were then.",
);
export type StatusChange = z.infer<typeof StatusChange>;

export const ProspectDetail = named(
  "ProspectDetail",
  z.object({
    ...listItem,
    notes: z.array(Note).check(z.maxLength(limits.notesInDetail)),
    appointments: z.array(Appointment),
    statusHistory: z.array(StatusChange),
  }),
  "A prospect with its 5 newest notes, all appointments (soonest first) and its complete status history (newest first).",
);
export type ProspectDetail = z.infer<typeof ProspectDetail>;

/** A field that may be left out, or sent as null where it can be empty. */
const clearable = <S extends z.ZodMiniType>(schema: S) => z.optional(z.nullable(schema));

const input = {
  name: clearable(text(limits.name)),
  phoneNumber: clearable(text(limits.phone)),
  secondaryPhoneNumber: clearable(text(limits.phone)),
  emailAddress: clearable(Email),
  lat: clearable(degrees(90)),
  lng: clearable(degrees(180)),
  addressId: clearable(Id),
  /** Makes a new address of the company; not together with `addressId`. */
  address: clearable(NewAddress),
  currentStatusId: clearable(Id),
  assignedToUserId: clearable(Id),
  source: clearable(text(limits.source)),
  sourceId: clearable(text(limits.sourceId)),
  customFieldData: clearable(CustomFields),
};

const oneAddress = z.refine<{ addressId?: unknown; address?: unknown }>(
  ({ addressId, address }) => addressId == null || address == null,
  { error: "address and addressId exclude each other", path: ["address"] },
);

export const NewProspect = named(
  "NewProspect",
  z.object({ ...input, sourceCreatedAt: clearable(InstantInput) }).check(oneAddress),
);
export type NewProspect = z.output<typeof NewProspect>;

export const ProspectPatch = named(
  "ProspectPatch",
  z.object({ ...input, assignedByUserId: z.optional(Id) }).check(oneAddress),
);
export type ProspectPatch = z.output<typeof ProspectPatch>;
