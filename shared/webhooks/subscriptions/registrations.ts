/** Reads and writes the registrations of one webhook. */
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, below, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError, ConditionFailed, notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { registrationsChange } from "#shared/webhooks/subscriptions/registrations-version.ts";
import type { NewRegistration, Registration } from "#shared/webhooks/subscriptions/schema.ts";
import {
  presentRegistration,
  readWebhook,
  registrationWrite,
  storedRegistration,
} from "#shared/webhooks/subscriptions/webhooks.ts";

export async function listRegistrations(
  context: ApiContext,
  companyId: number,
  webhookId: number,
): Promise<Registration[]> {
  return (await readWebhook(context, companyId, webhookId)).registrations.map(presentRegistration);
}

/** Counted on the webhook's row in the same transaction: it exists, and its limit holds. */
export async function createRegistration(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  input: NewRegistration,
): Promise<Registration> {
  const now = context.clock.now();
  const registration = storedRegistration(companyId, webhookId, await context.ids.next(), input, iso(now));
  const counted = {
    update: keys.webhook(companyId, webhookId),
    change: { add: { registrationCount: 1 } },
    when: all(present, below("registrationCount", limits.registrationsPerWebhook)),
  };
  const made = presentRegistration(registration);
  const writes = [counted, registrationWrite(registration), registrationsChange(companyId, now)];
  await context.commit(writes, made).catch((error: unknown) => {
    if (!(error instanceof ConditionFailed)) throw error;
    if (error.failed.some(({ item }) => item === undefined)) throw notFound("webhook");
    const limit = limits.registrationsPerWebhook;
    throw new ApiError("conflict", `A webhook may have at most ${limit} registrations.`);
  });
  return made;
}

export async function deleteRegistration(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  id: number,
): Promise<void> {
  const uncounted = {
    update: keys.webhook(companyId, webhookId),
    change: { add: { registrationCount: -1 } },
    when: present,
  };
  const removed = { remove: keys.registration(companyId, webhookId, id), when: present };
  const change = registrationsChange(companyId, context.clock.now());
  await context.table.transact([uncounted, removed, change]).catch((error: unknown) => {
    throw error instanceof ConditionFailed ? notFound("registration") : error;
  });
}
