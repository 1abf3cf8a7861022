/** Changes a webhook, its secret and its registrations. Only sent fields change; a patch that changes nothing writes nothing. */
import { randomUUID } from "node:crypto";
import { iso } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { ConditionFailed, notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { assertTarget } from "#shared/outbound/public-url.ts";
import { registrationsChange } from "#shared/webhooks/subscriptions/registrations-version.ts";
import {
  type Registration,
  type RegistrationPatch,
  type SecretChoice,
  StoredRegistration,
  type Webhook,
  type WebhookPatch,
} from "#shared/webhooks/subscriptions/schema.ts";
import { asPrevious, holdsSecretOf, sealedSecret } from "#shared/webhooks/subscriptions/sealed-secret.ts";
import {
  maskedWebhook,
  presentRegistration,
  presentWebhook,
  readWebhook,
} from "#shared/webhooks/subscriptions/webhooks.ts";

/** Deliveries that wait go to the new url. */
export async function updateWebhook(
  context: ApiContext,
  companyId: number,
  id: number,
  patch: WebhookPatch,
): Promise<Webhook> {
  const rows = await readWebhook(context, companyId, id);
  const { name = rows.webhook.name, url = rows.webhook.url } = patch;
  const isNewName = name !== rows.webhook.name;
  const isNewUrl = url !== rows.webhook.url;
  if (!isNewName && !isNewUrl) return maskedWebhook(rows);
  if (isNewUrl) await assertTarget(url, setting("WEBHOOK_URL_POLICY"));
  const updatedAt = iso(context.clock.now());
  const set = { ...(isNewName && { name }), ...(isNewUrl && { url }), updatedAt };
  const write = { update: keys.webhook(companyId, id), change: { set }, when: present };
  await context.table.write(write).catch(notFoundFor("webhook"));
  return maskedWebhook({ ...rows, webhook: { ...rows.webhook, ...set } });
}

/** The answer holds the new secret in full: it is not shown again. The old one signs too for a day. */
export function rotateSecret(
  context: ApiContext,
  companyId: number,
  id: number,
  choice: SecretChoice,
): Promise<Webhook> {
  return optimistic(async () => {
    const rows = await readWebhook(context, companyId, id);
    const { webhook } = rows;
    const secretKey = choice.secretKey ?? randomUUID();
    const now = context.clock.now();
    const set = {
      ...(await sealedSecret(context.secrets, webhook, secretKey)),
      previousSecret: await asPrevious(context.secrets, webhook, iso(now + limits.secretOverlapMs)),
      updatedAt: iso(now),
    };
    const rotated = presentWebhook({ ...rows, webhook: { ...webhook, ...set } }, secretKey);
    const when = all(present, holdsSecretOf(webhook));
    const change = { set, remove: ["secretKey"] };
    await context.commit([{ update: keys.webhook(companyId, id), change, when }], rotated);
    return rotated;
  });
}

/** Throws not_found where the webhook is gone, too. */
export async function readRegistration(
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

/** Deliveries that wait keep what they were matched with, and windows that are open their time. */
export async function updateRegistration(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  id: number,
  { filter, ...fields }: RegistrationPatch,
): Promise<Registration> {
  const current = await readRegistration(context, companyId, webhookId, id);
  const isNewDelay = fields.delayMinutes !== undefined && fields.delayMinutes !== current.delayMinutes;
  const given = {
    ...fields,
    ...(filter !== undefined && { filter: filter === null ? null : JSON.stringify(filter) }),
    ...(isNewDelay && { delayChangedAt: iso(context.clock.now()) }),
  };
  const next = StoredRegistration.parse({ ...current, ...given });
  if (JSON.stringify(next) !== JSON.stringify(StoredRegistration.parse(current))) {
    const update = { update: keys.registration(companyId, webhookId, id), change: { set: given }, when: present };
    const writes = [update, registrationsChange(companyId, context.clock.now())];
    await context.table.transact(writes).catch(notFoundFor("registration"));
  }
  return presentRegistration(next);
}

const notFoundFor =
  (what: "webhook" | "registration") =>
  (error: unknown): never => {
    throw error instanceof ConditionFailed ? notFound(what) : error;
  };
