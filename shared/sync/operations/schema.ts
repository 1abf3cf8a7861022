/** The operations that a device sends after it was offline, and their results. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { INSTANT_TEXT, InstantInput } from "#shared/instant.ts";
import { isObject } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import { Problem } from "#shared/problem.ts";
import { AppointmentPatch, NewAppointment, NewNote, NewProspect, ProspectPatch } from "#shared/prospects/input.ts";
import type { Appointment, Prospect } from "#shared/prospects/schema.ts";
import { TagChoice } from "#shared/reference/input.ts";
import { Id, named, text } from "#shared/schema.ts";
import { Uuid } from "#shared/uuid.ts";

const noFields = z._default(z.object({}), {});
/** The version that the record had on the device when the user changed it. */
const base = { baseVersion: z.optional(z.int().check(z.minimum(1))) };
const dated = { occurredAt: z.optional(InstantInput) };

const prospect = { id: z.optional(Id), clientRecordId: z.optional(Uuid) };
const oneName = z.refine<{ id?: unknown; clientRecordId?: unknown }>(
  ({ id, clientRecordId }) => (id === undefined) !== (clientRecordId === undefined),
  { error: "must be sent, or clientRecordId instead, but not both", path: ["id"] },
);

/** Each operation of a batch is validated alone, so that a faulty one does not prevent the others. */
export const operations = {
  "prospect.create": z.object({
    type: z.literal("prospect.create"),
    clientRecordId: Uuid,
    fields: z._default(NewProspect, {}),
    ...dated,
  }),
  "prospect.update": z
    .object({ type: z.literal("prospect.update"), ...prospect, fields: ProspectPatch, ...base, ...dated })
    .check(oneName),
  "prospect.delete": z
    .object({ type: z.literal("prospect.delete"), ...prospect, fields: noFields, ...base })
    .check(oneName),
  "prospect.tags": z
    .object({ type: z.literal("prospect.tags"), ...prospect, fields: TagChoice, ...base })
    .check(oneName),
  "note.create": z.object({ type: z.literal("note.create"), ...prospect, fields: NewNote, ...dated }).check(oneName),
  "appointment.create": z
    .object({ type: z.literal("appointment.create"), ...prospect, fields: NewAppointment, ...dated })
    .check(oneName),
  "appointment.update": z.object({
    type: z.literal("appointment.update"),
    id: Id,
    fields: AppointmentPatch,
    ...base,
    ...dated,
  }),
} as const;

export type Operation = z.output<(typeof operations)[keyof typeof operations]>;

/** A field that the OpenAPI document describes, but that is validated only with its operation. */
const later = (schema: Record<string, unknown>) => z.optional(z.unknown().check(z.meta(schema)));

export const SentOperation = named(
  "SyncOperation",
  z.object({
    opId: Uuid,
    type: later({ type: "string", enum: Object.keys(operations) }),
    id: later({ type: "integer", format: "int64", minimum: 1 }),
    clientRecordId: later({ type: "string", format: "uuid" }),
    fields: later({ type: "object", additionalProperties: true }),
    baseVersion: later({ type: "integer", minimum: 1 }),
    occurredAt: later({ type: "string" }),
  }),
  "A change that a user made on a device.",
);
export type SentOperation = z.output<typeof SentOperation>;

/* @__PURE__ */ explain([SentOperation], () => ({
  fields: {
    opId: "A UUID that the device has made for this operation. It makes the operation safe to repeat.",
    type: "What the operation does. Required.",
    id: "The prospect; for `appointment.update` the appointment. Not for `prospect.create`.",
    clientRecordId:
      "The id that the caller has given to the prospect when creating it, in this batch or before. Required for `prospect.create`; otherwise it replaces `id`.",
    fields:
      "The body of the single request: of POST `/api/prospects`, PATCH `/api/prospects/{id}`, PUT `/api/prospects/{id}/tags`, POST `/api/prospects/{id}/notes`, POST `/api/prospects/{id}/appointments` or PATCH `/api/appointments/{id}`.",
    baseVersion:
      "The version of the record that the user has changed. If the record was written since then, the outcome is `conflict`. A new version without such a write is no conflict: for example, if a note was added, or a status was renamed. For updates, tags and deletions; without it, the last change to arrive wins.",
    occurredAt: `When the user made the change. Kept with a status change, a note and an appointment. A time up to ${limits.clockAheadMs / 60_000} minutes ahead counts as the time of arrival, a later one is refused. For these facts at most ${limits.factAgeMs / 86_400_000} days ago. ${INSTANT_TEXT}`,
  },
}));

export const OperationBatch = named(
  "SyncOperations",
  z.object({
    deviceId: text(limits.deviceId, 1),
    operations: z.array(SentOperation).check(z.minLength(1), z.maxLength(limits.operationsAtOnce)),
  }),
  "Operations in the order in which the user made them.",
);
export type OperationBatch = z.output<typeof OperationBatch>;

/* @__PURE__ */ explain([OperationBatch], () => ({
  fields: { deviceId: "A name that the device has given to itself. The service does not store it." },
  example: {
    deviceId: "8d0a6e5e-tablet",
    operations: [
      {
        opId: "0b9b1a52-6f3c-4c56-9a9e-0f5b7c1f8a01",
        type: "prospect.create",
        clientRecordId: "5f0c2c1e-3f0a-4d53-8a52-7e3f1f7f0c11",
        fields: { name: "Maria Alvarez", lat: 39.7392, lng: -104.9903 },
      },
      {
        opId: "0b9b1a52-6f3c-4c56-9a9e-0f5b7c1f8a02",
        type: "note.create",
        clientRecordId: "5f0c2c1e-3f0a-4d53-8a52-7e3f1f7f0c11",
        fields: { body: "Wants a quote after the hail season." },
      },
    ],
  },
}));

const Outcome = named(
  "SyncOutcome",
  z.enum(["applied", "duplicate", "conflict", "rejected", "blocked", "retry"]),
  "What became of an operation.",
);
export const OperationResult = named(
  "SyncOperationResult",
  z.object({
    opId: z.string(),
    outcome: Outcome,
    id: z.nullable(Id),
    version: z.nullable(z.int()),
    // The schema is no union of `Prospect` and `Appointment`, because client generators make poor code for a union.
    record: z.optional(
      z.custom<Prospect | Appointment>(isObject).check(z.meta({ type: "object", additionalProperties: true })),
    ),
    problem: z.optional(Problem),
  }),
  "The result of one operation.",
);
export type OperationResult = z.input<typeof OperationResult>;

/* @__PURE__ */ explain([OperationResult], () => ({
  fields: {
    outcome:
      "`applied`; `duplicate`: it was applied before; `conflict`: the record has another version than `baseVersion`; `rejected`: it can never be applied; `blocked`: an earlier operation on the same record of this batch failed; `retry`: send it again.",
    id: "The record: the note of `note.create`, the appointment of an operation on appointments, otherwise the prospect. Null if it is not known.",
    version: "The version of the record after the operation; for `conflict` the current one. Null if it is not known.",
    record: "The current `Prospect` or `Appointment`. Only for `conflict`.",
    problem: "Why the operation is `rejected`, or `retry` after an error.",
  },
}));

export const OperationResults = named(
  "SyncOperationResults",
  z.object({ results: z.array(OperationResult) }),
  "The results, in the order of the operations.",
);
export type OperationResults = z.input<typeof OperationResults>;
