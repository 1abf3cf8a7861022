/** Sample data of all events, for the OpenAPI document and for test deliveries. */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { UserSummary } from "#shared/auth/user-schema.ts";
import type { DeliveryQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { explain } from "#shared/documentation.ts";
import { notFound } from "#shared/errors.ts";
import type { Job } from "#shared/jobs/bulk/schema.ts";
import type { ImportResult } from "#shared/jobs/import/schema.ts";
import type { Address } from "#shared/prospects/address.ts";
import type { Appointment, Note, Prospect } from "#shared/prospects/schema.ts";
import type { StatusSummary, Tag } from "#shared/reference/schema.ts";
import type { ApiKey } from "#shared/reference/service-account-schema.ts";
import { getUser, userSummary } from "#shared/reference/users.ts";
import { named } from "#shared/schema.ts";
import type { Territory } from "#shared/territories/territories.ts";
import { catalogue, EventName } from "#shared/webhooks/catalogue.ts";
import { deliveryId, newDelivery } from "#shared/webhooks/delivery.ts";
import type { Queued } from "#shared/webhooks/delivery-schema.ts";
import { askedDelivery } from "#shared/webhooks/messages.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

const times = { createdAt: "2026-06-01T15:04:05.678Z", updatedAt: "2026-06-01T15:04:05.678Z" };

const user: UserSummary = { id: 7, firstName: "Ravi", lastName: "Rep", email: "ravi@example.com" };
const status: StatusSummary = { id: 1024, value: "Interested", color: "#10B981" };
const tag: Tag = { id: 1025, value: "Hail damage", color: "#DC2626" };
const address: Address = {
  id: 1026,
  address1: "1437 Bannock St",
  address2: null,
  city: "Denver",
  state: "CO",
  zip: "80202",
  formattedAddress: "1437 Bannock St, Denver, CO 80202",
};
const territory: Territory = {
  id: 1027,
  name: "Capitol Hill",
  polygon: [
    [-104.987, 39.74],
    [-104.973, 39.74],
    [-104.973, 39.727],
  ],
  totalProperties: 410,
  assignedToUserId: 7,
  companyId: 3,
  ...times,
};
const serviceAccount: UserSummary = {
  id: 1032,
  firstName: "",
  lastName: "Web form",
  email: "service-account-1032@users.invalid",
  type: "service",
};
const key: ApiKey = {
  id: "4fK2xQ9a",
  name: "Production",
  last4: "0aZ9",
  scopes: ["prospects:write"],
  createdBy: user,
  createdAt: times.createdAt,
  expiresAt: "2026-08-30T15:04:05.678Z",
  lastUsedAt: "2026-06-01T15:04:05.678Z",
  orphanedAt: null,
  replacedBy: null,
};
const note: Note = {
  id: 1028,
  prospectId: 1030,
  body: "Wants a quote after the hail season.",
  createdBy: user,
  ...times,
};
const appointment: Appointment = {
  id: 1029,
  prospectId: 1030,
  title: "Roof inspection",
  startAt: "2026-06-02T15:00:00.000Z",
  endAt: "2026-06-02T16:00:00.000Z",
  allDay: false,
  status: "scheduled",
  location: "1437 Bannock St, Denver",
  notes: null,
  assignedTo: user,
  createdBy: user,
  ...times,
};
const prospect: Prospect = {
  id: 1030,
  name: "Maria Alvarez",
  phoneNumber: "+1 303 555 0142",
  secondaryPhoneNumber: null,
  emailAddress: null,
  lat: 39.7392,
  lng: -104.9903,
  source: "door",
  sourceId: null,
  sourceCreatedAt: null,
  customFieldData: { roofAge: 14, insured: true },
  ...times,
  address,
  currentStatus: status,
  assignedTo: user,
  tags: [{ tag }],
  appointments: [appointment],
};
const importResult: ImportResult = {
  id: 1032,
  imported: 2,
  updated: 0,
  skipped: 1,
  errors: [{ row: 3, message: "status: must be the value of an active status" }],
};
const job: Job = {
  id: 1033,
  kind: "prospect_bulk",
  state: "completed",
  total: 240,
  changed: 229,
  unchanged: 10,
  skipped: 1,
  failed: 0,
  unprocessed: 0,
  events: "summary",
  territoryId: null,
  undoes: null,
  undoneBy: null,
  failure: null,
  createdBy: user,
  ...times,
  undoableUntil: "2026-07-01T15:04:05.678Z",
};

export const records = {
  ...{ times, user, status, tag, address, territory, note, appointment, prospect, importResult, job },
  ...{ serviceAccount, key },
};

const samples: { readonly [Name in EventName]: z.input<(typeof catalogue)[Name]> } = {
  "prospect.created": { prospect },
  "prospect.updated": { prospect, changedFields: ["phoneNumber", "tags"] },
  "prospect.status_changed": {
    prospect,
    previousStatus: { id: 1023, value: "Not Home", color: "#F59E0B" },
    newStatus: status,
    statusHistoryId: 1031,
    changedBy: user,
  },
  "prospect.assigned": { prospect, previousAssignee: null, newAssignee: user },
  "prospect.deleted": { prospect },
  "prospect.import_completed": importResult,
  "prospect.bulk_completed": { job },
  "territory.created": { territory },
  "territory.updated": { territory },
  "territory.deleted": { territory },
  "note.created": { note, prospect },
  "appointment.created": { appointment, prospect },
  "appointment.updated": { appointment, prospect },
  "appointment.cancelled": {
    appointment: { ...appointment, status: "cancelled" },
    prospect: { ...prospect, appointments: [] },
  },
  "api_key.expiring": { serviceAccount, key, daysLeft: 14 },
  "api_key.revoked": { serviceAccount, key },
  "api_key.orphaned": { serviceAccount, key: { ...key, orphanedAt: times.updatedAt } },
  "webhook.test": { webhook: { id: 2047, name: "CRM" } },
};

/** Returns the data of a sample, checked like that of an event. The data of `webhook.test` is about the given webhook. */
export const sampleData = (event: EventName, { id, name } = samples["webhook.test"].webhook): unknown =>
  catalogue[event].parse(event === "webhook.test" ? { webhook: { id, name } } : samples[event]);

export const TestRequest = named(
  "TestRequest",
  z.object({ event: z._default(EventName, "webhook.test") }),
  "The event of which a sample is sent.",
);

/* @__PURE__ */ explain([TestRequest], () => ({
  fields: { event: "Name of an event of `GET /api/webhooks/event-types`." },
  example: { event: "prospect.status_changed" },
}));

/** Sends a sample to one webhook, whatever its registrations are. The delivery belongs to the first registration that names the event. */
export async function sendTestDelivery(
  context: ApiContext,
  queue: DeliveryQueue,
  caller: Caller,
  webhookId: number,
  event: EventName,
): Promise<Plan<Queued>> {
  const { companyId, userId } = caller;
  const [{ webhook, registrations }, user] = await Promise.all([
    readWebhook(context, companyId, webhookId),
    getUser(context, companyId, userId),
  ]);
  const now = context.clock.now();
  const eventId = `test-${randomUUID()}`;
  const id = deliveryId(eventId, webhookId, iso(now));
  const registrationId = registrations.find((registration) => registration.event === event)?.id ?? null;
  const about = { id, companyId, webhookId, registrationId, event, eventId, createdAt: iso(now), dueMs: now };
  const delivery = newDelivery(
    { ...about, trigger: "manual", triggeredBy: userSummary(user) },
    JSON.stringify(sampleData(event, webhook)),
    { test: true },
  );
  const isThere = { check: keys.webhook(companyId, webhookId), when: present, orThrow: () => notFound("webhook") };
  return askedDelivery({ queue, clock: context.clock }, delivery, [isThere]);
}
