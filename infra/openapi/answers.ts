/** Defines the example responses in the OpenAPI document. The examples use the same few records, so their ids match. */

import { importColumns } from "#shared/prospects/csv/format.ts";
import { records } from "#shared/webhooks/events/samples.ts";

const {
  times,
  user: UserSummary,
  status: StatusSummary,
  tag: Tag,
  address: Address,
  territory: Territory,
  note: Note,
  appointment: Appointment,
  prospect: Prospect,
  importResult: ImportResult,
  job: Job,
  serviceAccount,
  key: ApiKey,
} = records;

const User = {
  ...UserSummary,
  role: "sales",
  permissions: ["canViewAllProspects"],
  isActive: true,
  ...times,
  invitation: "accepted",
  invitationExpiresAt: null,
};
const Company = { id: 3, name: "Acme Roofing", ...times };
const Me = { user: UserSummary, company: Company, role: "sales", permissions: ["canViewAllProspects"] };

const activity = { statusChanges: 41, notes: 12, appointments: 3, creations: 9 };
const Status = { ...StatusSummary, sortOrder: 4, isActive: true };

const { id: territoryId, polygon, ...territoryFields } = Territory;
const TerritoryCollection = {
  type: "FeatureCollection",
  features: [
    {
      type: "Feature",
      id: territoryId,
      geometry: { type: "Polygon", coordinates: [[...polygon, polygon[0]].toReversed()] },
      properties: territoryFields,
    },
  ],
};

const StatusChange = {
  id: 1031,
  status: StatusSummary,
  previousStatus: null,
  changedBy: UserSummary,
  source: "api",
  createdAt: times.createdAt,
};
const RowFault = ImportResult.errors[0];

const links = "https://files.example.com";
const soon = "2026-06-01T16:04:05.678Z";
const Upload = {
  method: "PUT",
  url: `${links}/uploads/3/1033.csv?X-Amz-Signature=5d41402abc4b2a76`,
  headers: { "content-type": "text/csv", "if-none-match": "*", "content-length": "184320" },
  expiresAt: soon,
};
const done = {
  id: 1032,
  state: "completed",
  dryRun: false,
  processed: 3,
  written: 2,
  imported: 2,
  updated: 0,
  skipped: 1,
};
const ImportSummary = { ...done, failure: null, createdByUserId: UserSummary.id, ...times };
const read = { encoding: "utf-8", ignoredColumns: ["Favourite colour"], warnings: 0 };
const Import = { ...ImportSummary, ...read, errors: [RowFault], errorReport: null, upload: null };
const waiting = { id: 1033, state: "awaiting_upload", processed: 0, written: 0, imported: 0, updated: 0, skipped: 0 };
const Export = {
  id: 1034,
  state: "completed",
  total: 100_000,
  processed: 100_000,
  bytes: 5_242_880,
  file: { url: `${links}/exports/3/1034.csv?X-Amz-Signature=7d793037a0760186`, expiresAt: soon },
  keptUntil: "2026-06-08T15:04:05.678Z",
  failure: null,
  ...times,
};

const untouched = { changed: 0, unchanged: 0, skipped: 0, failed: 0 };
const newJob = { ...Job, state: "queued", ...untouched, unprocessed: 240, undoableUntil: null };
const JobResult = { id: 1030, outcome: "skipped", code: "not_found", detail: null };

const Registration = {
  id: 2048,
  event: "prospect.status_changed",
  filter: { "newStatus.value": ["Sold"] },
  delayMinutes: 0,
  triggerMode: "automatic",
  manualTriggerButtonText: null,
};
const Webhook = {
  id: 2047,
  name: "CRM",
  url: "https://crm.example.com/hooks/canvassing",
  secretKey: "••••1f9a",
  status: "active",
  companyId: 3,
  ...times,
  registrations: [Registration],
};

const withSecret = (secretKey: string) => ({
  ...Webhook,
  secretKey,
  standardWebhooksSecret: `whsec_${Buffer.from(secretKey).toString("base64")}`,
});

const Delivery = {
  id: "dlv_0mb6x3k2a1f4c9d07b35e8a61c204",
  webhookId: 2047,
  registrationId: 2048,
  event: "prospect.status_changed",
  trigger: "automatic",
  status: "delivered",
  attemptCount: 1,
  nextAttemptAt: null,
  heldBy: null,
  ...times,
};
const Attempt = { number: 1, startedAt: times.createdAt, latencyMs: 87, status: 200, error: null, answer: "" };

const operation = { opId: "0b9b1a52-6f3c-4c56-9a9e-0f5b7c1f8a01", outcome: "applied", id: 1030, version: 1 };
const otherOperation = { ...operation, opId: "0b9b1a52-6f3c-4c56-9a9e-0f5b7c1f8a02", id: 1028 };

const components: Readonly<Record<string, unknown>> = {
  User,
  Me,
  Status,
  Tag,
  Address,
  Territory,
  TerritoryCollection,
  ActivityReport: {
    ...{ from: "2026-06-01T00:00:00.000Z", to: "2026-06-07T23:59:59.999Z", groupBy: "user", timezone: "UTC" },
    ...{ countedSince: null, totals: activity, items: [{ user: UserSummary, ...activity }] },
  },
  TerritoryStats: {
    total: 412,
    byStatus: [
      { status: StatusSummary, count: 400 },
      { status: null, count: 12 },
    ],
    byAssignee: [
      { user: UserSummary, count: 410 },
      { user: null, count: 2 },
    ],
    untouchedDays: 12,
  },
  TerritoryImport: {
    created: 1,
    skipped: 0,
    failed: 1,
    results: [
      { index: 0, outcome: "created", id: 1027, ids: [1027], code: null, detail: null },
      {
        index: 1,
        outcome: "failed",
        ...{ id: null, ids: [] },
        code: "unsupported_geometry",
        detail: "geometry: has holes, and a territory has one ring",
      },
    ],
  },
  Note,
  Appointment,
  Prospect,
  ProspectDetail: { ...Prospect, notes: [Note], statusHistory: [StatusChange] },
  ProspectPage: { items: [Prospect], total: 1, page: 1, pageSize: 50 },
  ChangesPage: {
    phase: "changes",
    items: [
      { type: "prospects", id: Prospect.id, version: 4, op: "upsert", data: Prospect },
      { type: "prospects", id: 1031, version: 2, op: "remove", reason: "hidden" },
    ],
    cursor: "AV8kQ0mV2pQmZ2h0",
    hasMore: false,
  },
  VectorTile: "(bytes of a Protocol Buffers message)",
  Clusters: {
    items: [
      {
        type: "cluster",
        key: "13/1706/3110",
        lat: 39.7391,
        lng: -104.9901,
        count: 3,
        byStatus: [
          { statusId: 130, count: 2 },
          { statusId: null, count: 1 },
        ],
        bbox: [-104.991, 39.7385, -104.9893, 39.7396],
      },
      { type: "pin", id: 1030, lat: 39.7392, lng: -104.9903, count: 1, statusColor: "#10B981" },
    ],
    total: 4,
    unmapped: 12,
  },
  MapPin: { id: 1030, lat: 39.7392, lng: -104.9903, statusColor: "#10B981" },
  FileResult: { id: 1032, dryRun: false, imported: 2, updated: 0, skipped: 1, ...read, errors: [RowFault] },
  ImportJob: Import,
  ImportSummary,
  ImportPage: { items: [ImportSummary], nextCursor: null },
  ExportJob: Export,
  Job,
  JobPage: { items: [Job], nextCursor: null },
  JobResultPage: { items: [JobResult], nextCursor: null },
  BulkDryRun: { count: 240, samples: [Prospect] },
  Registration,
  Action: { registrationId: 2048, label: "Send to the CRM", event: "prospect.status_changed" },
  Webhook,
  EventType: {
    event: "territory.deleted",
    description: "A territory was deleted.",
    schema: { type: "object", properties: { territory: { type: "object" } }, required: ["territory"] },
  },
  DeliveryDetail: {
    ...Delivery,
    body: '{"id":"dlv_0mb6x3k2a1f4c9d07b35e8a61c204","event":"prospect.status_changed"}',
    attempts: [Attempt],
  },
  DeliveryPage: { items: [Delivery], nextCursor: null },
  Replayed: { count: 128 },
  SyncOperationResults: { results: [operation, otherOperation] },
  Queued: { deliveryId: Delivery.id },
  Deleted: { id: 1030 },
  ServiceAccount: {
    id: serviceAccount.id,
    name: serviceAccount.lastName,
    role: "sales",
    permissions: ["canViewAllProspects"],
    ...times,
  },
  ApiKey,
  ApiKeyWithSecret: { ...ApiKey, key: `pck_${ApiKey.id}_THIS_KEY_IS_AN_EXAMPLE_0000000000${ApiKey.last4}` },
  RevokedKey: { id: ApiKey.id },
};

const partlyDone = { ...Job, changed: 100, unchanged: 0, skipped: 0, unprocessed: 140, undoableUntil: null };

/** By function file: examples of responses that have no component, or that differ from their component's example. */
const answers: Readonly<Record<string, unknown>> = {
  "docs/openapi": { openapi: "3.1.0", info: { title: "Canvassing", version: "1" }, paths: {} },
  "docs/openapi30": { openapi: "3.0.3", info: { title: "Canvassing", version: "1" }, paths: {} },
  "docs/page": "<!doctype html>",
  health: { status: "ok" },
  "health-webhooks": { signature: "1c7f5b0e".repeat(8), sha256: "e3b0c442".repeat(8) },
  "webhooks/pause": { ...Webhook, status: "paused" },
  "webhooks/rotate-secret": withSecret("1b9e4c7d-2a3b-4d5e-8f60-7c8d9e0f1f9a"),
  "prospects/template": `${importColumns.join(",")}\r\n`,
  "prospects/export": [
    "id,name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedTo,assignedToEmail,tags,notes,createdBy,source,createdAt",
    '1030,Maria Alvarez,+1 303 555 0142,,39.7392,-104.9903,1437 Bannock St,,Denver,CO,80202,Interested,Ravi Rep,ravi@example.com,Hail damage,"Wants a quote, after the hail season.",Ada Admin,door,2026-06-01T15:04:05.678Z',
    "",
  ].join("\r\n"),
  "imports/create": { ...Import, ...waiting, encoding: null, ignoredColumns: [], errors: [], upload: Upload },
  "imports/cancel": { ...ImportSummary, ...waiting, state: "cancelled" },
  "exports/create": {
    ...Export,
    state: "running",
    total: null,
    processed: 0,
    bytes: null,
    file: null,
    keptUntil: null,
  },
  "prospects/bulk": newJob,
  "territories/runs": { ...newJob, kind: "territory_run", territoryId },
  "jobs/results-ndjson": `${JSON.stringify(JobResult)}\n`,
  "jobs/results-csv": "id,outcome,code,detail\r\n1030,skipped,not_found,\r\n",
  "jobs/undo": { ...newJob, id: 1034, kind: "undo", total: 229, unprocessed: 229, undoes: 1033 },
  "jobs/pause": { ...partlyDone, state: "paused" },
  "jobs/resume": { ...partlyDone, state: "queued" },
  "jobs/cancel": { ...Job, state: "cancelled", changed: 100, unchanged: 0, skipped: 0, unprocessed: 140 },
  "webhooks/create": withSecret("6f1c2d3e-4b5a-4c7d-8e9f-0a1b2c3d1f9a"),
};

export function answerExample(file: string, component: string | undefined, isList: boolean): unknown {
  const own = answers[file];
  if (own !== undefined) return own;
  const example = component === undefined ? undefined : components[component];
  return isList && example !== undefined ? [example] : example;
}
