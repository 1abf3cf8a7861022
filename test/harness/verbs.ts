/** The verbs of the API as functions that also commit their plan, so that a test can call them one after the other. */
import type { Caller } from "#shared/auth/caller.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import { type ApiContext, commitTo } from "#shared/context.ts";
import { carryOut, type Plan } from "#shared/db/plan.ts";
import * as controls from "#shared/jobs/bulk/control.ts";
import * as bulk from "#shared/jobs/bulk/create.ts";
import * as queues from "#shared/jobs/bulk/queue.ts";
import * as runs from "#shared/jobs/bulk/territory-runs.ts";
import * as exports from "#shared/jobs/export/requests.ts";
import * as files from "#shared/jobs/import/import.ts";
import * as imports from "#shared/jobs/import/requests.ts";
import type { FileResult } from "#shared/jobs/import/schema.ts";
import type { ImportOptions } from "#shared/jobs/import/stored.ts";
import * as addresses from "#shared/prospects/addresses.ts";
import * as appointments from "#shared/prospects/appointments.ts";
import * as finding from "#shared/prospects/list/find-or-make.ts";
import * as notes from "#shared/prospects/notes.ts";
import * as prospects from "#shared/prospects/write.ts";
import * as apiKeys from "#shared/reference/api-keys.ts";
import * as users from "#shared/reference/change-user.ts";
import * as invitations from "#shared/reference/invite.ts";
import * as accounts from "#shared/reference/service-accounts.ts";
import * as values from "#shared/reference/values.ts";
import * as territories from "#shared/territories/territories.ts";
import * as redelivery from "#shared/webhooks/deliver/redeliver.ts";
import * as replays from "#shared/webhooks/deliver/replay.ts";
import * as triggers from "#shared/webhooks/events/manual-trigger.ts";
import * as tests from "#shared/webhooks/events/samples.ts";
import * as registrations from "#shared/webhooks/subscriptions/registrations.ts";
import * as webhookRows from "#shared/webhooks/subscriptions/webhooks.ts";
import * as webhooks from "#shared/webhooks/subscriptions/write.ts";

type Verb<Context, Given extends readonly unknown[], Answer> = (
  context: Context,
  ...given: Given
) => Promise<Plan<Answer>>;

const committing =
  <Context extends ApiContext, Given extends readonly unknown[], Answer>(verb: Verb<Context, Given, Answer>) =>
  async (context: Context, ...given: Given): Promise<Answer> => {
    const plan = await carryOut(() => verb(context, ...given), commitTo(context.table));
    return plan.answer;
  };

export const createProspect = committing(prospects.createProspect);
export const findOrMake = committing(finding.findOrMake);
export const updateProspect = committing(prospects.updateProspect);
export const deleteProspect = committing(prospects.deleteProspect);
export const setTags = committing(prospects.setTags);
export const createNote = committing(notes.createNote);
export const updateNote = committing(notes.updateNote);
export const deleteNote = committing(notes.deleteNote);
export const createAppointment = committing(appointments.createAppointment);
export const updateAppointment = committing(appointments.updateAppointment);
export const deleteAppointment = committing(appointments.deleteAppointment);
export const createAddress = committing(addresses.createAddress);
export const updateAddress = committing(addresses.updateAddress);
export const createStatus = committing(values.createStatus);
export const updateStatus = committing(values.updateStatus);
export const deactivateStatus = committing(values.deactivateStatus);
export const createTag = committing(values.createTag);
export const updateTag = committing(values.updateTag);
export const deleteTag = committing(values.deleteTag);
export const createUser = committing(invitations.createUser);
export const changeUser = committing(users.changeUser);
export const disableOrWithdraw = committing(users.disableOrWithdraw);
export const createAccount = committing(accounts.createAccount);
export const changeAccount = committing(accounts.changeAccount);
export const deleteAccount = committing(accounts.deleteAccount);
export const createKey = committing(apiKeys.createKey);
export const rotateKey = committing(apiKeys.rotateKey);
export const takeOverKey = committing(apiKeys.takeOverKey);
export const revokeKey = committing(apiKeys.revokeKey);
export const createTerritory = committing(territories.createTerritory);
export const updateTerritory = committing(territories.updateTerritory);
export const deleteTerritory = committing(territories.deleteTerritory);
export const startJob = committing(queues.startJob);
export const createBulk = committing(bulk.createBulk);
export const createRun = committing(runs.createRun);
export const beginUndo = committing(controls.beginUndo);
export const beginImportUndo = committing(imports.beginImportUndo);
export const beginImport = committing(imports.beginImport);
export const cancelImport = committing(imports.cancelImport);
export const beginExport = committing(exports.beginExport);
export const createWebhook = committing(webhooks.createWebhook);
export const updateWebhook = committing(webhooks.updateWebhook);
export const rotateSecret = committing(webhooks.rotateSecret);
export const deleteWebhook = committing(webhookRows.deleteWebhook);
export const pauseWebhook = committing(webhooks.pauseWebhook);
export const resumeWebhook = committing(webhooks.resumeWebhook);
export const createRegistration = committing(registrations.createRegistration);
export const updateRegistration = committing(registrations.updateRegistration);
export const deleteRegistration = committing(registrations.deleteRegistration);
export const triggerAction = committing(triggers.triggerAction);
export const sendTestDelivery = committing(tests.sendTestDelivery);
export const redeliver = committing(redelivery.redeliver);
export const startReplay = committing(replays.startReplay);

export const importFile = (
  context: files.RequestContext,
  caller: Caller,
  bytes: Uint8Array,
  options: ImportOptions = {},
): Promise<FileResult> => files.importFile(context, caller, bytes, options, commitTo(context.table));

/** An identity provider that refuses each call, because a change of a user without an invitation must not call the provider. */
const nobody: IdentityProvider = {
  takesSubjects: true,
  answersAfterMs: 0,
  invite: () => Promise.reject(new Error("the test has no identity provider")),
  withdraw: () => Promise.reject(new Error("the test has no identity provider")),
};

type UserPatch = Parameters<typeof users.changeUser>[4];
export const updateUser = committing((context, caller: Caller, id: number, patch: UserPatch) =>
  users.changeUser(context, nobody, caller, id, patch),
);
export const disableUser = committing((context, caller: Caller, id: number) =>
  users.changeUser(context, nobody, caller, id, { isActive: false }),
);
