/** What the reference page says of sections, schemas and fields, beside what the contracts say of themselves. */
import { limits } from "#shared/limits.ts";

/** Sections of the reference page by tag. */
export const sections: Readonly<Record<string, string>> = {
  Documentation: "This document and the page that shows it. Neither needs a token.",
  Users: "Who may sign in, in which role and with which permissions. Everybody reads them, admins and owners write.",
  Statuses: "What the company calls the states of its prospects. Everybody reads them, admins and owners write.",
  Tags: "Labels for prospects. Everybody reads them and puts them on prospects, admins and owners make them.",
  Prospects: "Homes and businesses being canvassed. Who does not see all of the company sees what is assigned to them.",
  Addresses: "Postal addresses that prospects share: a change shows at once on every prospect that has it.",
  Territories: "Named zones on the map, given to a user or to nobody. Every role reads and writes them.",
  Notes: "What was seen and said at the door. Whoever sees the prospect reads and writes its notes.",
  Appointments: "When somebody comes again. Whoever sees the prospect reads and writes its appointments.",
  Actions: "Buttons that send a prospect to a webhook. Whoever sees the prospect presses them.",
  Deliveries: "What was sent to webhooks, what waits, and how receivers answered. For admins and owners only.",
  Webhooks: "Receivers of signed events and what each is told. For admins and owners only.",
};

/** Who may call, by the contract's `allow`. */
export const rights = {
  public: "Needs no token.",
  everyone: "For every signed-in user.",
  admin: "For admins and owners.",
  canViewAllProspects: "Needs the permission `canViewAllProspects`, which admins and owners have.",
  canManageProspects: "Needs the permission `canManageProspects`, which admins and owners have.",
} as const;

const inactive = (record: string) =>
  `A ${record} of another company is 404. One that was taken out of use can still be read and changed; only a second DELETE is 404.`;

/** Of operations on one record, by section: where a DELETE takes records out of use, they are not gone. */
export const hidden = (section: string): string =>
  ({ Statuses: inactive("status"), Users: inactive("user") })[section] ??
  "A record of another company, one that the caller may not see and one that was deleted are all 404.";

/** Of schemas that have no description of their own, by name. */
export const schemas: Readonly<Record<string, string>> = {
  AppointmentPatch: "Only sent fields change; null clears a field that may be empty.",
  NewProspect: "A new prospect. Every field is optional; `address` and `addressId` exclude each other.",
  NewRegistration: "A new subscription of a webhook to one event.",
  NewTerritory: "A new zone. Every field is optional.",
  NewUser: "Who is invited, in which role.",
  NewWebhook: "A new receiver of events, with its first registrations.",
  RegistrationPatch: "Only sent fields change; null as `filter` means every event of that name.",
  SecretChoice: "The new secret, if it is not to be made here.",
  WebhookPatch: "Only sent fields change.",
  ProspectPatch: "Only sent fields change; null clears. `address` and `addressId` exclude each other.",
  TerritoryPatch: "Only sent fields change; null as `assignedToUserId` unassigns.",
};

const instant = "ISO 8601; without an offset it is UTC, without a time it is the first instant of that UTC day.";

/** Of fields, by name, or by schema and name where the name alone says too little. */
export const fields: Readonly<Record<string, string>> = {
  id: "Unique in the whole service.",
  companyId: "The company that it belongs to.",
  createdAt: "UTC, with milliseconds.",
  updatedAt: "UTC, with milliseconds. A write that changes nothing leaves it as it is.",
  value: "What it is called. Unique in the company without case; no comma and no semicolon.",
  color: "Hexadecimal, such as `#1D4ED8`.",
  sortOrder: "Place in the list, smallest first. When a status is made without one, it comes last.",
  "Status.isActive": "A status that is not active cannot be given to a prospect.",
  "User.isActive": "A user who is not active cannot sign in.",
  "UserPatch.isActive": "True brings a disabled user back.",
  address1: "Street and number.",
  address2: "Flat, suite or floor.",
  formattedAddress: "In one line, as it was given or else as it is computed from the other fields.",
  lat: "Degrees, -90 to 90.",
  lng: "Degrees, -180 to 180.",
  phoneNumber: "As it was typed. The search also compares digits.",
  source: "How it came here: `api` unless said otherwise.",
  sourceId: "Id in the system that it comes from. Need not be unique.",
  sourceCreatedAt: `When the system that it comes from made it. ${instant}`,
  customFieldData: `Any JSON object of at most ${limits.customFieldKeys} keys, ${limits.customFieldBytes} bytes and ${limits.customFieldDepth} levels. A change replaces it whole.`,
  addressId: `An address of the company. At most ${limits.prospectsPerAddress} prospects may share one.`,
  currentStatusId: "An active status of the company. A change adds an entry to the status history.",
  assignedToUserId: "An active user of the company, or null for nobody.",
  assignedByUserId: "Who assigns it: the caller unless said otherwise.",
  "Prospect.appointments": "The soonest one to come that is scheduled, or none.",
  "ProspectDetail.appointments": "All of them, soonest first.",
  "ProspectDetail.notes": `The ${limits.notesInDetail} newest, newest first.`,
  statusHistory: "Every change of status, newest first.",
  "StatusChange.status": "What it became, as it was called then; null where the status was cleared.",
  previousStatus: "What it was before, as it was called then; null where there was none.",
  items: "One page, newest first.",
  total: "All matches, counted exactly.",
  "ProspectPage.page": "The page that was asked for.",
  "ProspectPage.pageSize": `The size that was used: at most ${limits.pageSizeMax}.`,
  statusColor: "Colour of the current status.",
  startAt: instant,
  endAt: `Not before \`startAt\`. ${instant}`,
  allDay: "Whether the time of day means nothing.",
  location: "Where to meet, in words.",
  "Appointment.status": "A status that becomes `cancelled` cancels the appointment.",
  polygon: "Ring of `[lng, lat]` points, open or closed, kept exactly as it was sent.",
  totalProperties: "An estimate, kept as it is sent.",
  permissions: "What a sales user may do beyond their own prospects. Admins and owners hold every permission.",
  email: "Unique in the whole service; cannot be changed.",
  url: "Must be https and lead to public addresses only.",
  secretKey:
    "Key of the signature in `X-Service-Signature`. Shown in full only by the answers that made it; elsewhere its last four characters.",
  registrations: `At most ${limits.registrationsPerWebhook}.`,
  trigger: "`manual` where somebody pressed a button.",
  "Delivery.registrationId": "Null for a test.",
  "DeliveryDetail.registrationId": "Null for a test.",
  "Action.registrationId": "The registration that the button belongs to.",
  label: "What stands on the button.",
  attemptCount: "Attempts made so far.",
  nextAttemptAt: "When the next attempt is due; null unless the delivery waits.",
  "Delivery.status": "`waiting`, `delivered`, `exhausted` when no attempt is left, or `cancelled`.",
  "DeliveryDetail.status": "`waiting`, `delivered`, `exhausted` when no attempt is left, or `cancelled`.",
  "DeliveryDetail.body": "The bytes that are signed and sent, the same at every attempt.",
  attempts: "First to last.",
  "Attempt.number": "From 1.",
  startedAt: "UTC, with milliseconds.",
  latencyMs: "Milliseconds of the whole exchange.",
  "Attempt.status": "HTTP status of the answer; null where there was none.",
  "Attempt.error": "Why there was no answer.",
  answer: "Beginning of the answer's body, at most 4 KB.",
  nextCursor: "Leads to the next part.",
  deliveryId: "Id of the delivery, as receivers find it in `X-Service-Delivery` and `webhook-id`.",
  schema: "JSON Schema, draft 2020-12, of the `data` of a delivery.",
  description: "What it means.",
  event: "Name of the event, such as `prospect.status_changed`.",
  filter: "Criteria that the event's `data` must meet, every one of them; null means every event of that name.",
  delayMinutes: `Minutes from the event to its delivery, 0 to ${limits.delayMinutesMax}.`,
  triggerMode: "`manual` waits until somebody presses a button.",
  manualTriggerButtonText: "Label of that button.",
  tagIds: `Tags of the company, at most ${limits.tagsPerProspect} different ones. All others are taken off.`,
  imported: "How many prospects were made.",
  skipped: "How many rows have an error.",
  "Import.errors": "One for each row that was skipped, in the order of the file.",
  "ImportResult.errors": "One for each row that was skipped, in the order of the file.",
  "Import.state": "Whether its prospects are there: once it is `completed`.",
  processed: "Data rows of the file.",
  row: "As a spreadsheet counts: the header is 1.",
  "RowFault.message": "All faults of the row, with the columns that they are in.",
  "Problem.type": "A URN made of the code.",
  "Problem.status": "The HTTP status.",
  "Problem.detail": "What happened, for people.",
  "Problem.code": "What happened, for programs. The list is closed.",
  "Problem.requestId": "The same as `X-Request-Id`.",
  "Problem.errors": "Each fault: a JSON pointer into the body or the name of a parameter, a code and a message.",
};
