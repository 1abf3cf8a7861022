/** Reads and writes the registrations of one webhook. */
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { below, present, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import {
  type NewRegistration,
  type Registration,
  type RegistrationPatch,
  StoredRegistration,
} from "#shared/webhooks/subscriptions/schema.ts";
import {
  presentRegistration,
  readWebhook,
  registrationsChange,
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

/** The condition on the webhook's row fails if the webhook does not exist or has the maximum number of registrations. */
export async function createRegistration(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  input: NewRegistration,
): Promise<Plan<Registration>> {
  const now = context.clock.now();
  const registration = storedRegistration(companyId, webhookId, await context.ids.next(), input, iso(now));
  const counted: Write = {
    update: keys.webhook(companyId, webhookId),
    change: { add: { registrationCount: 1 } },
    when: below("registrationCount", limits.registrationsPerWebhook),
    orThrow: (webhook) => (webhook === undefined ? notFound("webhook") : tooMany()),
  };
  return {
    writes: [counted, registrationWrite(registration), registrationsChange(companyId, now)],
    answer: presentRegistration(registration),
  };
}

const tooMany = (): ApiError =>
  new ApiError("conflict", `A webhook can have at most ${limits.registrationsPerWebhook} registrations.`);

export async function getRegistration(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  id: number,
): Promise<Registration> {
  return presentRegistration(await readRegistration(context, companyId, webhookId, id));
}

async function readRegistration(
  { table }: ApiContext,
  companyId: number,
  webhookId: number,
  id: number,
): Promise<StoredRegistration> {
  const [webhook, item] = await Promise.all([
    table.get(keys.webhook(companyId, webhookId)),
    table.get(keys.registration(companyId, webhookId, id)),
  ]);
  if (webhook === undefined || item === undefined) throw notFound("registration");
  return StoredRegistration.parse(item);
}

/** Changes the given fields. Waiting deliveries keep their body and due time, and open debounce windows keep their end. */
export async function updateRegistration(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  id: number,
  { filter, ...fields }: RegistrationPatch,
): Promise<Plan<Registration>> {
  const current = await readRegistration(context, companyId, webhookId, id);
  const isNewDelay = fields.delayMinutes !== undefined && fields.delayMinutes !== current.delayMinutes;
  const set = {
    ...fields,
    ...(filter !== undefined && { filter: filter === null ? null : JSON.stringify(filter) }),
    ...(isNewDelay && { delayChangedAt: iso(context.clock.now()) }),
  };
  const next = StoredRegistration.parse({ ...current, ...set });
  const answer = presentRegistration(next);
  if (JSON.stringify(next) === JSON.stringify(StoredRegistration.parse(current))) return unchanged(answer);
  const update = {
    update: keys.registration(companyId, webhookId, id),
    change: { set },
    when: present,
    orThrow: missing,
  };
  return { writes: [update, registrationsChange(companyId, context.clock.now())], answer };
}

const missing = (): ApiError => notFound("registration");

export async function deleteRegistration(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  id: number,
): Promise<Plan<{ id: number }>> {
  const uncounted = {
    update: keys.webhook(companyId, webhookId),
    change: { add: { registrationCount: -1 } },
    when: present,
    orThrow: missing,
  };
  const removed = { remove: keys.registration(companyId, webhookId, id), when: present, orThrow: missing };
  return { writes: [uncounted, removed, registrationsChange(companyId, context.clock.now())], answer: { id } };
}
