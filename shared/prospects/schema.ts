/** The schemas of prospects, notes, appointments and status changes in the form that the API shows and accepts. */

import * as z from "zod/mini";
import { ASSIGNEE_TEXT, UserSummary } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import { finiteNumbers, isObject } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import { Address, NewAddress } from "#shared/prospects/address.ts";
import { StatusSummary, Tag } from "#shared/reference/schema.ts";
import {
  degrees,
  Email,
  Id,
  INSTANT_TEXT,
  InstantInput,
  LAT_TEXT,
  LNG_TEXT,
  named,
  Timestamp,
  text,
} from "#shared/schema.ts";

/** May be omitted, or null to clear the field. */
const clearable = <S extends z.ZodMiniType>(schema: S) => z.optional(z.nullable(schema));

/**
 * A JSON object within limits, which the API returns exactly as it was sent. The object is never rebuilt key by key, so that a key such as
 * `__proto__` remains plain data.
 */
export const CustomFields = z
  .custom<Record<string, unknown>>(isObject, { error: "must be a JSON object", abort: true })
  .check(
    z.refine((value) => Object.keys(value).length <= limits.customFieldKeys, {
      error: `must have at most ${limits.customFieldKeys} keys`,
      abort: true,
    }),
    z.refine((value) => isShallow(value), {
      error: `must not nest deeper than ${limits.customFieldDepth} levels`,
      abort: true,
    }),
    z.refine((value) => fits(value), {
      error: `must take at most ${limits.customFieldBytes} bytes as JSON, in well-formed Unicode`,
      abort: true,
    }),
    finiteNumbers,
    z.meta({ type: "object", additionalProperties: true, maxProperties: limits.customFieldKeys }),
  );

/** Whether the JSON text is small enough and well-formed. JSON.stringify escapes lone surrogates, so a regular expression finds them. */
function fits(value: Record<string, unknown>): boolean {
  const json = JSON.stringify(value);
  return Buffer.byteLength(json) <= limits.customFieldBytes && !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(json);
}

/** The check is iterative and not recursive, so that deep nesting cannot exhaust the stack. */
function isShallow(value: Record<string, unknown>): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.customFieldDepth) return false;
    level = level.flatMap((entry) => (typeof entry === "object" && entry !== null ? Object.values(entry) : []));
  }
  return true;
}

export const Note = named(
  "Note",
  z.object({
    id: Id,
    body: z.string(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    createdBy: z.nullable(UserSummary),
  }),
  "A note on a prospect.",
);
export type Note = z.infer<typeof Note>;

const NoteBody = text(limits.note, 1);

export const NewNote = z.object({ body: NoteBody });
export type NewNote = z.infer<typeof NewNote>;

/* @__PURE__ */ explain([NewNote], () => ({ example: { body: "Wants a quote after the hail season." } }));

export const NotePatch = z.object({ body: z.optional(NoteBody) });
export type NotePatch = z.infer<typeof NotePatch>;

/* @__PURE__ */ explain([NotePatch], () => ({ example: { body: "Wants a quote in July." } }));

const AppointmentStatus = z.enum(["scheduled", "completed", "cancelled", "no_show"]);

/** Fields that both the API and the table have. */
export const appointmentFields = {
  id: Id,
  prospectId: Id,
  title: z.string(),
  startAt: Timestamp,
  endAt: z.nullable(Timestamp),
  allDay: z.boolean(),
  status: AppointmentStatus,
  location: z.nullable(z.string()),
  notes: z.nullable(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const Appointment = named(
  "Appointment",
  z.object({ ...appointmentFields, assignedTo: z.nullable(UserSummary), createdBy: z.nullable(UserSummary) }),
  "An appointment with a prospect.",
);
export type Appointment = z.infer<typeof Appointment>;

/* @__PURE__ */ explain([Appointment], () => ({
  fields: { status: "A change to `cancelled` cancels the appointment." },
}));

const AppointmentTitle = text(limits.appointmentTitle, 1);

/** The end is not compared with the start here, because a patch may contain only one of them. The write compares them. */
const appointmentInput = {
  endAt: clearable(InstantInput),
  allDay: z.optional(z.boolean()),
  status: z.optional(AppointmentStatus),
  location: clearable(text(limits.appointmentLocation)),
  notes: clearable(text(limits.appointmentNotes)),
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

/* @__PURE__ */ explain([Prospect], () => ({
  fields: { appointments: "The soonest upcoming appointment that is scheduled, or an empty list." },
}));

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

/* @__PURE__ */ explain([StatusChange], () => ({
  fields: {
    status: "The new status with its label at that time; null if the status was cleared.",
    previousStatus: "The former status with its label at that time; null if there was none.",
    source: "How the change came to the service; `api` by default.",
  },
}));

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

/* @__PURE__ */ explain([ProspectDetail], () => ({
  fields: {
    appointments: "All appointments, soonest first.",
    notes: `The ${limits.notesInDetail} newest notes, newest first.`,
    statusHistory: "Every change of status, newest first.",
  },
}));

const prospectInput = {
  name: clearable(text(limits.name)),
  phoneNumber: clearable(text(limits.phone)),
  secondaryPhoneNumber: clearable(text(limits.phone)),
  emailAddress: clearable(Email),
  lat: clearable(degrees(90)),
  lng: clearable(degrees(180)),
  addressId: clearable(Id),
  /** Creates a new address. A request may not contain both `address` and `addressId`. */
  address: clearable(NewAddress),
  currentStatusId: clearable(Id),
  assignedToUserId: clearable(Id),
  source: clearable(text(limits.source)),
  sourceId: clearable(text(limits.sourceId)),
  customFieldData: clearable(CustomFields),
};

const oneAddress = z.refine<{ addressId?: unknown; address?: unknown }>(
  ({ addressId, address }) => addressId == null || address == null,
  { error: "must not be sent together with addressId", path: ["address"] },
);

export const NewProspect = named(
  "NewProspect",
  z.object({ ...prospectInput, sourceCreatedAt: clearable(InstantInput) }).check(oneAddress),
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
    addressId: `An address of the company. At most ${limits.prospectsPerAddress} prospects may share one.`,
    currentStatusId: "An active status of the company. A change adds an entry to the status history.",
    assignedToUserId: ASSIGNEE_TEXT,
    assignedByUserId: "The user who assigns the prospect; the caller by default.",
  },
}));
/* @__PURE__ */ explain([ProspectPatch], () => ({ example: { currentStatusId: 1024, assignedToUserId: 7 } }));
