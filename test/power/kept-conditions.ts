/**
 * Conditions that stay although no test fails when they are dropped alone, each with the reason. A name is the file, the line and the
 * dropped part, as `npm run power -- conditions` prints them.
 */
const QUEUE = "The condition on the version of the company's queue is in the same transaction.";
const PROSPECT = "The condition on the version of the prospect is in the same transaction.";

const USER = "The condition on the version of the user's row is in the same transaction.";
const EXISTS =
  "Only the time to live and the erasure of a company delete the row. A late write must not create it again.";

export const keptConditions: Readonly<Record<string, string>> = {
  'shared/jobs/bulk/control.ts | return [{ update: key, change, when: equals("version", version) }]; | equals("version", version)':
    QUEUE,
  'shared/jobs/bulk/queue.ts | writes.push({ update: keys.bulkJob(companyId, first), change, when: equals("state", "queued") }); | equals("state", "queued")':
    QUEUE,
  "shared/prospects/addresses.ts | when: present, | present": EXISTS,
  'shared/prospects/appointments.ts | { put: { ...keyOf(next), ...datedItem(next) }, when: equals("version", current.version) }, | equals("version", current.version)':
    PROSPECT,
  'shared/prospects/appointments.ts | { remove: keyOf(current), when: equals("version", current.version) }, | equals("version", current.version)':
    PROSPECT,
  "shared/prospects/status-changes.ts | return { put: { ...attachedKeys.history(companyId, prospectId, change.version), ...datedItem(row) }, when: absent }; | absent":
    PROSPECT,
  'shared/reference/change-user.ts | ...(isPending ? [{ remove: keys.identity(sub), when: all(equals("userId", id), exists("invitedUntil")) }] : []), | all(equals("userId", id), exists("invitedUntil"))':
    USER,
  'shared/reference/change-user.ts | ...(isOurs ? [{ remove: claimKey, when: all(equals("userId", id), exists("invitedUntil")) }] : []), | all(equals("userId", id), exists("invitedUntil"))':
    USER,
  "shared/webhooks/debounce-window.ts | when: present, | present": EXISTS,
};
