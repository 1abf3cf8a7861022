/** Prospects with their notes, appointments and status changes: the shapes that the interface shows and accepts. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { finiteNumbers, isObject } from "#shared/json.ts";
import { limits } from "#shared/limits.ts";
import { Address, NewAddress } from "#shared/prospects/address.ts";
import { StatusSummary, Tag } from "#shared/reference/schema.ts";
import { degrees, Email, Id, InstantInput, named, Timestamp, text } from "#shared/schema.ts";

/** A field that may be omitted, or sent as null to clear it. */
const clearable = <S extends z.ZodMiniType>(schema: S) => z.optional(z.nullable(schema));

/**
 * Taken and given back as it is: the value is checked as a whole and never rebuilt key by key, so that keys such as
 * `__proto__` stay plain data.
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

/** JSON.stringify writes a lone surrogate as an escape, so well-formedness is looked for there. */
function fits(value: Record<string, unknown>): boolean {
  const json = JSON.stringify(value);
  return Buffer.byteLength(json) <= limits.customFieldBytes && !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(json);
}

/** Level by level, so that no depth of a hostile value can exhaust the stack. */
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

export const NotePatch = z.object({ body: z.optional(NoteBody) });
export type NotePatch = z.infer<typeof NotePatch>;

export const AppointmentStatus = z.enum(["scheduled", "completed", "cancelled", "no_show"]);

/** The fields that the interface and the table share. */
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

const AppointmentTitle = text(limits.appointmentTitle, 1);

/** An end before the start is refused by the write, which knows both. */
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

export const AppointmentPatch = named(
  "AppointmentPatch",
  z.object({ title: z.optional(AppointmentTitle), startAt: z.optional(InstantInput), ...appointmentInput }),
);
export type AppointmentPatch = z.output<typeof AppointmentPatch>;

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

const prospectInput = {
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
  z.object({ ...prospectInput, sourceCreatedAt: clearable(InstantInput) }).check(oneAddress),
);
export type NewProspect = z.output<typeof NewProspect>;

export const ProspectPatch = named(
  "ProspectPatch",
  z.object({ ...prospectInput, assignedByUserId: z.optional(Id) }).check(oneAddress),
);
export type ProspectPatch = z.output<typeof ProspectPatch>;
