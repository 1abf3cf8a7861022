/** Lists the schemas of stored rows and of messages between functions. A release records them, so that a test notices later changes. */
import * as z from "zod/mini";
import { Identity } from "#shared/auth/directory.ts";
import { StoredKeyRing } from "#shared/auth/key-ring.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import { oneJob } from "#shared/aws/sqs.ts";
import { FactState, LoggedFacts } from "#shared/company-index/activity/log.ts";
import { DayRow } from "#shared/company-index/activity/read.ts";
import { DeltaFields, DeltaItem } from "#shared/company-index/delta.ts";
import { Head, INDEX_FORMAT, PartContent } from "#shared/company-index/manifest.ts";
import { shapeOf } from "#shared/db/shapes.ts";
import { StoredClaim } from "#shared/http/idempotency.ts";
import { StoredBulk, StoredQueue, StoredResult } from "#shared/jobs/bulk/stored.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { ImportMessage } from "#shared/jobs/import/job.ts";
import { RowFault, StoredImport } from "#shared/jobs/import/stored.ts";
import { AddressPack, PackedAddressFields, StoredAddress } from "#shared/prospects/address-rows.ts";
import { StoredClientRecord } from "#shared/prospects/client-records.ts";
import { StoredMatchClaim } from "#shared/prospects/list/find-or-make.ts";
import { PackedLocators, StoredNoteLocator } from "#shared/prospects/rows.ts";
import { StoredAppointment, StoredNote, StoredProspect, StoredStatusChange } from "#shared/prospects/stored.ts";
import { StoredCompany, StoredStatus, StoredTag } from "#shared/reference/schema.ts";
import { CompanyEmail, EmailClaim } from "#shared/reference/user.ts";
import { StoredDataKey } from "#shared/secrets/key-service.ts";
import { StoredSession } from "#shared/sessions/stored.ts";
import { StoredReceipt } from "#shared/sync/operations/receipts.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";
import { StoredReplay } from "#shared/webhooks/deliver/replay.ts";
import { StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { StoredEventData } from "#shared/webhooks/event-data.ts";
import { StoredWindow, StoredWindowEvent } from "#shared/webhooks/events/debounce.ts";
import { StoredFanOut, StoredProgress } from "#shared/webhooks/events/fan-out.ts";
import { StoredTrigger } from "#shared/webhooks/events/manual-trigger.ts";
import { ExpectedEntry } from "#shared/webhooks/expected-deliveries.ts";
import { StoredLimiter } from "#shared/webhooks/limiter/limiter.ts";
import { QueueMessage } from "#shared/webhooks/messages.ts";
import { StoredRegistration, StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/** The schemas by the type of the row. `TYPE/NAME` is a value inside such a row or in a file, and `message/NAME` a queue message. */
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
  matchClaim: StoredMatchClaim,
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
  keyRing: StoredKeyRing,
  limiter: StoredLimiter,
  history: StoredStatusChange,
  idempotency: StoredClaim,
  identity: Identity,
  import: StoredImport,
  "import/errors": RowFault,
  indexHead: Head,
  loggedFacts: LoggedFacts,
  matched: ExpectedEntry,
  note: StoredNote,
  noteLocators: PackedLocators,
  locator: StoredNoteLocator,
  trigger: StoredTrigger,
  prospect: StoredProspect,
  receipt: StoredReceipt,
  registration: StoredRegistration,
  replay: StoredReplay,
  session: StoredSession,
  partManifest: PartContent,
  status: StoredStatus,
  tag: StoredTag,
  territory: StoredTerritory,
  user: StoredUser,
  webhook: StoredWebhook,
  window: StoredWindow,
  windowEvent: StoredWindowEvent,
  "message/bulk": oneJob("bulk"),
  "message/delivery": QueueMessage,
  "message/export": oneJob("export"),
  "message/import": ImportMessage,
};

export type RecordedSchemas = Readonly<Record<string, { readonly shape: number; readonly schema: unknown }>>;

/** Keywords that a release does not record. They do not change the stored form, and another zod version may write `pattern` differently. */
const texts = ["id", "title", "description", "examples", "pattern"] as const;

/** Returns the schemas without texts. `shape` is the version of the stored fields (`shared/db/shapes.ts`). */
export const schemasOfRelease = (): RecordedSchemas =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, described]) => {
      const schema = z.toJSONSchema(described, {
        ...{ io: "input", unrepresentable: "any", reused: "inline" },
        override({ jsonSchema }) {
          for (const text of texts) delete jsonSchema[text];
        },
      });
      const [type = name] = name.split("/");
      return [name, { shape: type === "partManifest" ? INDEX_FORMAT : shapeOf(type), schema }];
    }),
  );
