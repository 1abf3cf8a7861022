/**
 * Lists the schemas of all stored rows and of the messages between functions. A release records these schemas, so that a test notices later
 * changes.
 */
import * as z from "zod/mini";
import { Identity } from "#shared/auth/directory.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import { FactState, LoggedFacts } from "#shared/company-index/activity/log.ts";
import { DayRow } from "#shared/company-index/activity/read.ts";
import { DeltaFields, DeltaItem } from "#shared/company-index/delta.ts";
import { Head, INDEX_FORMAT, RunContent } from "#shared/company-index/manifest.ts";
import { shapeOf } from "#shared/db/shapes.ts";
import { StoredClaim } from "#shared/http/idempotency.ts";
import { StoredBulk, StoredQueue, StoredResult } from "#shared/jobs/bulk/stored.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { RowFault, StoredImport } from "#shared/jobs/import/stored.ts";
import { AddressPack, PackedAddressFields, StoredAddress } from "#shared/prospects/address-rows.ts";
import { StoredClientRecord } from "#shared/prospects/client-records.ts";
import { PackedLocators, StoredNoteLocator } from "#shared/prospects/rows.ts";
import { StoredAppointment, StoredNote, StoredProspect, StoredStatusChange } from "#shared/prospects/stored.ts";
import { StoredCompany, StoredStatus, StoredTag } from "#shared/reference/schema.ts";
import { CompanyEmail, EmailClaim } from "#shared/reference/user.ts";
import { StoredDataKey } from "#shared/secrets/key-service.ts";
import { StoredReceipt } from "#shared/sync/operations/receipts.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";
import { StoredWindow, StoredWindowEvent } from "#shared/webhooks/debounce-window.ts";
import { StoredReplay } from "#shared/webhooks/deliver/replay.ts";
import { StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { StoredEventData } from "#shared/webhooks/event-data.ts";
import { StoredFanOut, StoredProgress } from "#shared/webhooks/events/fan-out.ts";
import { StoredTrigger } from "#shared/webhooks/events/manual-trigger.ts";
import { ExpectedEntry } from "#shared/webhooks/expected-deliveries.ts";
import { StoredLimiter } from "#shared/webhooks/limiter/limiter.ts";
import { DeliveryMessage } from "#shared/webhooks/messages.ts";
import { StoredRegistration, StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/**
 * The schemas by the row's attribute `type`. A name with a slash is not the schema of a row. `TYPE/NAME` is the schema of a value that
 * belongs to a row of this type and is stored inside the row or in a file of the bucket. `message/NAME` is the schema of a queue message.
 */
export const schemas: Readonly<Record<string, z.ZodMiniType>> = {
  address: StoredAddress,
  addressPack: AddressPack,
  "addressPack/address": PackedAddressFields,
  appointment: StoredAppointment,
  attempt: StoredAttempt,
  bulkJob: StoredBulk,
  "bulkJob/result": StoredResult,
  bulkQueue: StoredQueue,
  clientRecord: StoredClientRecord,
  company: StoredCompany,
  companyEmail: CompanyEmail,
  "data-key": StoredDataKey,
  dayFacts: DayRow,
  dayImport: DayRow,
  daySum: DayRow,
  delivery: StoredDelivery,
  delta: DeltaItem,
  "delta/row": DeltaFields,
  email: EmailClaim,
  eventData: StoredEventData,
  export: StoredExport,
  factState: FactState,
  fanOut: StoredFanOut,
  fanOutProgress: StoredProgress,
  gate: StoredLimiter,
  history: StoredStatusChange,
  idempotency: StoredClaim,
  identity: Identity,
  import: StoredImport,
  "import/errors": RowFault,
  indexHead: Head,
  loggedFacts: LoggedFacts,
  matched: ExpectedEntry,
  note: StoredNote,
  notePlaces: PackedLocators,
  place: StoredNoteLocator,
  press: StoredTrigger,
  prospect: StoredProspect,
  receipt: StoredReceipt,
  registration: StoredRegistration,
  replay: StoredReplay,
  runSheet: RunContent,
  status: StoredStatus,
  tag: StoredTag,
  territory: StoredTerritory,
  user: StoredUser,
  webhook: StoredWebhook,
  window: StoredWindow,
  windowEvent: StoredWindowEvent,
  "message/delivery": DeliveryMessage,
};

export interface RecordedSchema {
  readonly shape: number;
  readonly schema: unknown;
}

/**
 * Returns each schema as JSON Schema without descriptions, and its shape number (the version of the stored fields, see
 * `shared/db/shapes.ts`).
 */
export function schemasOfRelease(): Record<string, RecordedSchema> {
  const described = Object.entries(schemas).map(([name, schema]) => {
    const [type = name] = name.split("/");
    const shape = type === "runSheet" ? INDEX_FORMAT : shapeOf(type);
    return [name, { shape, schema: storedForm(schema) }] as const;
  });
  return Object.fromEntries(described);
}

/**
 * Keywords that are removed before the comparison. They do not change the stored form. `pattern` is among them, because another version of
 * zod may write patterns differently.
 */
const texts: ReadonlySet<string> = new Set(["$schema", "id", "title", "description", "examples", "pattern"]);

function storedForm(schema: z.ZodMiniType): unknown {
  const converted = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" });
  return withoutTexts(converted, false);
}

function withoutTexts(part: unknown, areNames: boolean): unknown {
  if (Array.isArray(part)) return part.map((one) => withoutTexts(one, false));
  if (typeof part !== "object" || part === null) return part;
  const kept = Object.entries(part).filter(
    ([name, value]) => areNames || !texts.has(name) || typeof value === "object",
  );
  return Object.fromEntries(
    kept.map(([name, value]) => [name, withoutTexts(value, !areNames && (name === "properties" || name === "$defs"))]),
  );
}

/**
 * Compares the current schemas with the schemas of a release. A shape number is the version of the stored fields. Returns one line for each
 * schema that changed without a higher shape number, that has a lower shape number, or that is gone.
 */
export function unnumberedChanges(
  released: Readonly<Record<string, RecordedSchema>>,
  current: Readonly<Record<string, RecordedSchema>> = schemasOfRelease(),
): string[] {
  const names = [...new Set([...Object.keys(released), ...Object.keys(current)])];
  return names.flatMap((name) => {
    const [before, now] = [released[name], current[name]];
    if (before === undefined) return [];
    if (now === undefined) return [`rows of type ${name} have no schema any more`];
    if (now.shape < before.shape) return [`the shape of ${name} is ${now.shape}, and the release had ${before.shape}`];
    const isSame = JSON.stringify(before.schema) === JSON.stringify(now.schema);
    return isSame || now.shape > before.shape
      ? []
      : [`the schema of ${name} differs, but its shape is still ${now.shape}`];
  });
}
