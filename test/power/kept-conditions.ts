/**
 * Conditions of writes that the service keeps although no test fails without one of them, each with the reason. A key consists of the file,
 * the beginning of the write or the line, and the removed condition, as `npm run power -- conditions` prints them.
 */
const QUEUE = "The condition on the version of the company's queue is in the same transaction.";
const PROSPECT = "The condition on the version of the prospect is in the same transaction.";
const USER = "The condition on the version of the user's row is in the same transaction.";
const INVITED =
  "The condition on the version of the user's row is in the same transaction, unless the invitation expires within the request.";
const COMPANY = "The rows of its owner and statuses, whose ids come from the same counter, have the same condition.";
const REGISTRATION = "The condition on the registration is in the same transaction, and none outlives its webhook.";
const RANDOM = "The id is random and new.";
const EXISTS =
  "Only the time to live and the erasure of a company delete the row. A late write must not create it again.";

export const keptConditions: Readonly<Record<string, string>> = {
  'shared/jobs/bulk/queue.ts | { update: keys.bulkJob(companyId, first), change, when: | equals("state", "queued")':
    QUEUE,
  'shared/jobs/import/requests.ts | { update: keys.import(caller.companyId, id), change: { set: { ...changed, runsUntil, ...due(dueMs) } | equals("state", state)':
    EXISTS,
  "shared/prospects/addresses.ts | { update: keys.address(stored.companyId, stored.id), change: { add: { links: 1 }, drop: { prospectId | present":
    EXISTS,
  'shared/prospects/appointments.ts | { put: { ...keyOf(next), ...next }, when: | equals("version", current.version)':
    PROSPECT,
  'shared/prospects/appointments.ts | { remove: keyOf(current), when: | equals("version", current.version)': PROSPECT,
  "shared/prospects/read.ts | { ...noteOn(companyId, id, nowMs), when: all( | present": EXISTS,
  "shared/prospects/write.ts | { put: { ...attachedKeys.history(companyId, prospectId, change.version), ...row }, when: | absent":
    PROSPECT,
  'shared/reference/change-user.ts | { remove: keys.identity(sub), when: | all(equals("userId", id), exists("invitedUntil"))':
    INVITED,
  'shared/reference/change-user.ts | { remove: keys.identity(sub), when: all( | equals("userId", id)': INVITED,
  'shared/reference/change-user.ts | { remove: keys.identity(sub), when: all(equals("userId", id), | exists("invitedUntil")':
    USER,
  'shared/reference/change-user.ts | { remove: claimKey, when: all(equals("userId", id), | exists("invitedUntil")':
    USER,
  "shared/reference/create-company.ts | { put: { ...keys.company(companyId), ...company }, when: | absent": COMPANY,
  "shared/reference/service-accounts.ts | { put: { ...keys.keyRing(ring.id), ...ring }, when: | absent": RANDOM,
  "shared/sessions/sessions.ts | { put: { ...row }, when: | absent": RANDOM,
  "shared/sessions/sessions.ts | { put: { ...(await sessionRow(secrets, next)), replaces: digest }, when: | absent":
    RANDOM,
  "shared/webhooks/events/debounce.ts | { update: keys.delivery(companyId, webhookId, deliveryId), change: { set: { closed: boundsOf(open) } | present":
    EXISTS,
  'shared/webhooks/events/debounce.ts | { update: keys.delivery(companyId, webhookId, deliveryId), change: { remove: ["isBulk"] }, when: | present':
    EXISTS,
  "shared/webhooks/expected-deliveries.ts | { put: { ...expectedKeys.entry(companyId, createdAt.slice(0, 10), eventId), ...entry }, when: | absent":
    RANDOM,
  "shared/webhooks/messages.ts | { put: deliveryItem(delivery), when: | absent": RANDOM,
  "shared/webhooks/subscriptions/registrations.ts | { update: keys.webhook(companyId, webhookId), change: { add: { registrationCount: -1 } }, when: | present":
    REGISTRATION,
};
