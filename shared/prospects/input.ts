/** The schemas of request bodies for prospects, notes and appointments. */
import * as z from "zod/mini";
import { ASSIGNEE_TEXT } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import { INSTANT_TEXT, InstantInput } from "#shared/instant.ts";
import * as limits from "#shared/limits.ts";
import { AddressOrNull } from "#shared/prospects/address-input.ts";
import { CustomFields } from "#shared/prospects/custom-fields.ts";
import { ProspectDetail } from "#shared/prospects/detail.ts";
import { Appointment, Prospect } from "#shared/prospects/schema.ts";
import { AppointmentStatus } from "#shared/prospects/stored.ts";
import {
  degrees,
  Email,
  Id,
  LAT_TEXT,
  LNG_TEXT,
  named,
  orNull,
  requiredText,
  text,
  unlessBlank,
} from "#shared/schema.ts";
import { Uuid } from "#shared/uuid.ts";

/** A field that the client may omit, or clear with null. */
const clearable = <S extends z.ZodMiniType>(schema: S) => z.optional(z.nullable(schema));

const NoteBody = requiredText(limits.note);

export const NewNote = named("NewNote", z.object({ body: NoteBody }), "A new note.");
export type NewNote = z.infer<typeof NewNote>;

/* @__PURE__ */ explain([NewNote], () => ({ example: { body: "Wants a quote after the hail season." } }));

export const NotePatch = named("NotePatch", z.object({ body: z.optional(NoteBody) }), "Only sent fields change.");
export type NotePatch = z.infer<typeof NotePatch>;

/* @__PURE__ */ explain([NotePatch], () => ({ example: { body: "Wants a quote in July." } }));

const AppointmentTitle = requiredText(limits.appointmentTitle);

/** The verb compares `startAt` and `endAt`, because a patch may contain only one of them. */
const appointmentInput = {
  endAt: clearable(InstantInput),
  allDay: z.optional(z.boolean()),
  status: z.optional(AppointmentStatus),
  location: z.optional(orNull(text(limits.appointmentLocation))),
  notes: z.optional(orNull(text(limits.appointmentNotes))),
  assignedToUserId: clearable(Id),
};

export const NewAppointment = named(
  "NewAppointment",
  z.object({ title: AppointmentTitle, startAt: InstantInput, ...appointmentInput }),
  "A new appointment. `assignedToUserId` is the prospect's assignee, or else the caller, when it is not given.",
);
export type NewAppointment = z.output<typeof NewAppointment>;

/* @__PURE__ */ explain([NewAppointment], () => ({
  example: {
    title: "Roof inspection",
    startAt: "2026-06-02T15:00:00Z",
    endAt: "2026-06-02T16:00:00Z",
    location: "1437 Bannock St, Denver",
  },
}));

export const AppointmentPatch = named(
  "AppointmentPatch",
  z.object({ title: z.optional(AppointmentTitle), startAt: z.optional(InstantInput), ...appointmentInput }),
  "Only sent fields change; null clears a field that may be empty.",
);
export type AppointmentPatch = z.output<typeof AppointmentPatch>;

/* @__PURE__ */ explain([Appointment, NewAppointment, AppointmentPatch], () => ({
  fields: {
    startAt: INSTANT_TEXT,
    endAt: `Not before \`startAt\`. ${INSTANT_TEXT}`,
    allDay: "True if the time of day has no meaning.",
    location: "The meeting point, in words.",
    assignedToUserId: ASSIGNEE_TEXT,
  },
}));
/* @__PURE__ */ explain([AppointmentPatch], () => ({ example: { status: "completed" } }));

const prospectInput = {
  name: z.optional(orNull(text(limits.name))),
  phoneNumber: z.optional(orNull(text(limits.phone))),
  secondaryPhoneNumber: z.optional(orNull(text(limits.phone))),
  emailAddress: z.optional(orNull(Email)),
  lat: clearable(degrees(90)),
  lng: clearable(degrees(180)),
  addressId: clearable(Id),
  address: z.optional(AddressOrNull),
  currentStatusId: clearable(Id),
  assignedToUserId: clearable(Id),
  source: unlessBlank(z.nullable(text(limits.source))),
  sourceId: z.optional(orNull(text(limits.sourceId))),
  customFieldData: clearable(CustomFields),
};

const oneAddress = z.refine<{ addressId?: unknown; address?: unknown }>(
  ({ addressId, address }) => addressId == null || address == null,
  { error: "must not be sent together with addressId", path: ["address"] },
);

export const NewProspect = named(
  "NewProspect",
  z
    .object({ ...prospectInput, sourceCreatedAt: clearable(InstantInput), clientRecordId: z.optional(Uuid) })
    .check(oneAddress),
  "A new prospect. Every field is optional; `address` and `addressId` exclude each other.",
);
export type NewProspect = z.output<typeof NewProspect>;

/* @__PURE__ */ explain([NewProspect], () => ({
  example: {
    name: "Maria Alvarez",
    phoneNumber: "+1 303 555 0142",
    lat: 39.7392,
    lng: -104.9903,
    address: { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" },
    source: "door",
    customFieldData: { roofAge: 14, insured: true },
  },
}));

export const ProspectPatch = named(
  "ProspectPatch",
  z.object({ ...prospectInput, assignedByUserId: z.optional(Id) }).check(oneAddress),
  "Only sent fields change; null clears. `address` and `addressId` exclude each other.",
);
export type ProspectPatch = z.output<typeof ProspectPatch>;

/* @__PURE__ */ explain([Prospect, ProspectDetail, NewProspect, ProspectPatch], () => ({
  fields: {
    lat: LAT_TEXT,
    lng: LNG_TEXT,
    phoneNumber: "As it was typed. The search also compares the digits alone.",
    source: "How the prospect came to the service; `api` by default.",
    sourceId: "Id of the prospect in the system that it comes from. Need not be unique.",
    sourceCreatedAt: `When the source system created the prospect. ${INSTANT_TEXT}`,
    customFieldData: `Any JSON object of at most ${limits.customFieldKeys} keys, ${limits.customFieldBytes} bytes and ${limits.customFieldDepth} levels. A change replaces the whole object.`,
    clientRecordId:
      "A UUID that the client has given to the prospect. Each user may use it for one prospect only, even after the prospect is deleted. Absent if the client sent none.",
    addressId: `An address of the company. At most ${limits.prospectsPerAddress} prospects may share one.`,
    currentStatusId: "An active status of the company. A change adds an entry to the status history.",
    assignedToUserId: ASSIGNEE_TEXT,
    assignedByUserId: "The user who assigns the prospect; the caller by default.",
  },
}));
/* @__PURE__ */ explain([ProspectPatch], () => ({ example: { currentStatusId: 133, assignedToUserId: 139 } }));
