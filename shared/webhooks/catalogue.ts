/** The webhook events of the service: their names, the schemas of their `data`, and the catalogue that the API shows. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import { Job } from "#shared/jobs/bulk/schema.ts";
import { ImportResult } from "#shared/jobs/import/schema.ts";
import { openSchema } from "#shared/open-schema.ts";
import { Appointment, Note, Prospect } from "#shared/prospects/schema.ts";
import { StatusSummary } from "#shared/reference/schema.ts";
import { ApiKey } from "#shared/reference/service-account-schema.ts";
import { Id, named } from "#shared/schema.ts";
import { Territory } from "#shared/territories/territories.ts";

export const ChangedField = z.enum([
  "name",
  "phoneNumber",
  "secondaryPhoneNumber",
  "emailAddress",
  "lat",
  "lng",
  "address",
  "currentStatus",
  "assignedTo",
  "tags",
  "source",
  "sourceId",
  "customFieldData",
]);
export type ChangedField = z.infer<typeof ChangedField>;

const AppointmentData = z.object({ appointment: Appointment, prospect: Prospect });

const bulk = z.optional(
  named("BulkOrigin", z.object({ jobId: Id }), "The bulk job that has caused the event. Other events have none."),
);

const keyData = { serviceAccount: UserSummary, key: ApiKey };

const describe = <S extends z.ZodMiniType>(data: S, description: string): S => data.check(z.describe(description));

export const catalogue = {
  "prospect.created": describe(
    z.object({ prospect: Prospect, bulk }),
    "A prospect was created, with or without a status, or a deleted one was restored. Prospects of an import have one `prospect.import_completed` instead.",
  ),
  "prospect.updated": describe(
    z.object({ prospect: Prospect, changedFields: z.array(ChangedField), bulk }),
    "A prospect changed: `changedFields` names the changed fields.",
  ),
  "prospect.status_changed": describe(
    z.object({
      prospect: Prospect,
      previousStatus: z.nullable(StatusSummary),
      newStatus: z.nullable(StatusSummary),
      statusHistoryId: z.nullable(Id),
      changedBy: z.nullable(UserSummary),
      bulk,
    }),
    "A prospect's status changed or was cleared.",
  ),
  "prospect.assigned": describe(
    z.object({
      prospect: Prospect,
      previousAssignee: z.nullable(UserSummary),
      newAssignee: z.nullable(UserSummary),
      bulk,
    }),
    "A prospect was assigned to another user, or unassigned.",
  ),
  "prospect.deleted": describe(z.object({ prospect: Prospect, bulk }), "A prospect was deleted."),
  "prospect.import_completed": describe(
    ImportResult,
    "A file was imported. `errors` holds the first 100 errors; the import itself has all of them.",
  ),
  "prospect.bulk_completed": describe(
    z.object({ job: Job }),
    "A job that changes many prospects has ended: a bulk change, an undo, or the undo of an import. `job.state` is `completed`, `cancelled` or `failed`.",
  ),
  "territory.created": describe(z.object({ territory: Territory }), "A territory was created."),
  "territory.updated": describe(z.object({ territory: Territory }), "A territory changed."),
  "territory.deleted": describe(z.object({ territory: Territory }), "A territory was deleted."),
  "note.created": describe(z.object({ note: Note, prospect: Prospect }), "A note was added to a prospect."),
  "appointment.created": describe(AppointmentData, "An appointment with a prospect was created."),
  "appointment.updated": describe(AppointmentData, "An appointment changed."),
  "appointment.cancelled": describe(AppointmentData, "An appointment was cancelled or deleted."),
  "api_key.expiring": describe(
    z.object({ ...keyData, daysLeft: z.int() }),
    "A key of a service account ends in 14, 3 or 1 days. `daysLeft` is one of these numbers.",
  ),
  "api_key.revoked": describe(
    z.object(keyData),
    "A key of a service account was revoked, alone or with its account. A key that expires makes no event.",
  ),
  "api_key.orphaned": describe(
    z.object(keyData),
    "A key has lost its creator, who was disabled or got a lower role. It ends at `key.expiresAt`, unless an admin takes it over.",
  ),
  "webhook.test": describe(
    z.object({
      webhook: named("TestedWebhook", z.object({ id: Id, name: z.string() }), "The webhook that is tested."),
    }),
    "A test delivery was requested for a webhook. Only that webhook receives it; it needs no registration.",
  ),
} as const;

export const EventName = /* @__PURE__ */ z.keyof(/* @__PURE__ */ z.object(catalogue));
export type EventName = z.infer<typeof EventName>;

/** The events of a single prospect. A bulk job with the setting `events: "each"` causes them for each prospect that it changes. */
export type ProspectEvent =
  | "prospect.created"
  | "prospect.updated"
  | "prospect.status_changed"
  | "prospect.assigned"
  | "prospect.deleted";

/** An event that is made from a record of the table's stream. If Lambda repeats the record, the event gets the same id. */
export interface DomainEvent {
  readonly id: string;
  readonly event: EventName;
  readonly companyId: number;
  /** True if the event is about one record that a bulk job has changed, but not for `prospect.bulk_completed`. */
  readonly isBulk?: true | undefined;
  readonly recordId: number;
  readonly version: number;
  readonly createdAt: string;
  readonly data: unknown;
}

export const eventOf = <Name extends EventName>(
  row: { readonly id: number; readonly version: number; readonly companyId: number; readonly updatedAt: string },
  event: Name,
  data: z.input<(typeof catalogue)[Name]>,
): DomainEvent => ({
  id: `${row.id}-${row.version}-${event}`,
  event,
  companyId: row.companyId,
  recordId: row.id,
  version: row.version,
  createdAt: row.updatedAt,
  data: catalogue[event].parse(data),
});

/** Returns the data of a manual delivery: the prospect, and null in every other field except `bulk`, which is absent. */
export function manualData(event: string, prospect: Prospect): Record<string, unknown> {
  const data = Object.entries(catalogue).find(([name]) => name === event)?.[1];
  const others = Object.keys(data?.shape ?? {}).flatMap((field) => (field === "bulk" ? [] : [[field, null]]));
  return { ...Object.fromEntries(others), prospect: Prospect.parse(prospect) };
}

export const EventType = named(
  "EventType",
  z.object({
    event: z.string(),
    description: z.string(),
    schema: z.record(z.string(), z.unknown()),
  }),
  "An event that a registration can name.",
);
export type EventType = z.infer<typeof EventType>;

/* @__PURE__ */ explain([EventType], () => ({
  fields: {
    event: "Name of the event, such as `prospect.status_changed`.",
    description: "The meaning of the event.",
    schema: "JSON Schema, draft 2020-12, of the `data` of a delivery.",
  },
}));

let types: EventType[] | undefined;

export function eventTypes(): EventType[] {
  types ??= Object.entries(catalogue).map(([event, data]) => {
    const described: unknown = z.toJSONSchema(data, { io: "output", unrepresentable: "any" }).description;
    const schema = z.toJSONSchema(deliveredData(data), {
      io: "output",
      unrepresentable: "any",
      override: ({ jsonSchema }) => openSchema(jsonSchema),
    });
    return { event, description: String(described), schema: { ...schema } };
  });
  return types;
}

/** Returns the schema of an event's `data`. Every field but the prospect may be null, because a manual delivery has only the prospect. */
export function deliveredData({ shape }: (typeof catalogue)[EventName]) {
  const fields: Record<string, z.ZodMiniType> = shape;
  const others = Object.entries(fields).filter(([field]) => field !== "prospect");
  const orNull = (schema: z.ZodMiniType) => (schema instanceof z.ZodMiniNullable ? schema : z.nullable(schema));
  const nullable = others.map(([field, schema]) => [field, orNull(schema)] as const);
  return z.object({ ...Object.fromEntries(nullable), prospect: fields.prospect ?? z.optional(Prospect) });
}
