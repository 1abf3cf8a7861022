/** Creates, changes, pauses and resumes webhooks. Separate from webhooks.ts, so that other bundles have no code for URLs and secrets. */
import type { DeliveryQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, any, below, equals, missing, present, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { assertTarget } from "#shared/outbound/public-url.ts";
import { drainMessage } from "#shared/webhooks/messages.ts";
import type {
  NewWebhook,
  SecretChoice,
  StoredWebhook,
  Webhook,
  WebhookPatch,
} from "#shared/webhooks/subscriptions/schema.ts";
import { newSecret, newSecretLike, sealedSecret } from "#shared/webhooks/subscriptions/secret.ts";
import {
  maskedWebhook,
  presentWebhook,
  readWebhook,
  registrationsChange,
  registrationWrite,
  storedRegistration,
  type WebhookRows,
} from "#shared/webhooks/subscriptions/webhooks.ts";

/** Creates a webhook. Only the answer to this request contains the full secret. */
export async function createWebhook(context: ApiContext, companyId: number, input: NewWebhook): Promise<Plan<Webhook>> {
  const [id] = await Promise.all([context.ids.next(), assertTarget(input.url, setting("WEBHOOK_URL_POLICY"))]);
  const nowMs = context.clock.now();
  const now = iso(nowMs);
  const secretKey = input.secretKey ?? newSecret("uuid");
  const registrations = await Promise.all(
    input.registrations.map(async (entry) => storedRegistration(companyId, id, await context.ids.next(), entry, now)),
  );
  const webhook: StoredWebhook = {
    type: "webhook",
    id,
    companyId,
    name: input.name,
    url: input.url,
    ...(await sealedSecret(context.secrets, { companyId, id }, secretKey)),
    status: "active",
    registrationCount: registrations.length,
    createdAt: now,
    updatedAt: now,
  };
  const counted: Write = {
    ...registrationsChange(companyId, nowMs, 1),
    when: any(missing("webhooks"), below("webhooks", limits.webhooksPerCompany)),
    orThrow: () => new ApiError("conflict", `A company can have at most ${limits.webhooksPerCompany} webhooks.`),
  };
  const writes: Write[] = [counted, { put: { ...keys.webhook(companyId, id), ...webhook }, when: absent }];
  return {
    writes: [...writes, ...registrations.map(registrationWrite)],
    answer: presentWebhook({ webhook, registrations }, secretKey),
  };
}

/** Changes the name or URL of a webhook. If the URL changes, waiting deliveries are sent to the new one. */
export async function updateWebhook(
  context: ApiContext,
  companyId: number,
  id: number,
  patch: WebhookPatch,
): Promise<Plan<Webhook>> {
  const rows = await readWebhook(context, companyId, id);
  const { name = rows.webhook.name, url = rows.webhook.url } = patch;
  const isNewName = name !== rows.webhook.name;
  const isNewUrl = url !== rows.webhook.url;
  if (!isNewName && !isNewUrl) return unchanged(maskedWebhook(rows));
  if (isNewUrl) await assertTarget(url, setting("WEBHOOK_URL_POLICY"));
  const updatedAt = iso(context.clock.now());
  const set = { ...(isNewName && { name }), ...(isNewUrl && { url }), updatedAt };
  const orThrow = () => notFound("webhook");
  return {
    writes: [{ update: keys.webhook(companyId, id), change: { set }, when: present, orThrow }],
    answer: maskedWebhook({ ...rows, webhook: { ...rows.webhook, ...set } }),
  };
}

/** Replaces the secret. Only this answer contains the new secret. For a day, deliveries are signed with both secrets. */
export async function rotateSecret(
  context: ApiContext,
  companyId: number,
  id: number,
  choice: SecretChoice,
): Promise<Plan<Webhook>> {
  const rows = await readWebhook(context, companyId, id);
  const { webhook } = rows;
  const secretKey = choice.secretKey ?? (await newSecretLike(context.secrets, webhook));
  const now = context.clock.now();
  const set = {
    ...(await sealedSecret(context.secrets, webhook, secretKey)),
    previousSecret: { sealed: webhook.sealedSecret, until: iso(now + limits.secretOverlapMs) },
    updatedAt: iso(now),
  };
  const when = equals("sealedSecret", webhook.sealedSecret);
  return {
    writes: [{ update: keys.webhook(companyId, id), change: { set }, when }],
    answer: presentWebhook({ ...rows, webhook: { ...webhook, ...set } }, secretKey),
  };
}

/** Pauses a webhook. Attempts that are already running continue. */
export async function pauseWebhook(context: ApiContext, companyId: number, id: number): Promise<Plan<Webhook>> {
  const rows = await readWebhook(context, companyId, id);
  if (rows.webhook.status === "paused") return unchanged(maskedWebhook(rows));
  const now = iso(context.clock.now());
  const set = { status: "paused", updatedAt: now, dueShard: keys.pausedWebhooksShard(), dueAt: now } as const;
  return changed(rows, { set, remove: [] });
}

/** Resumes a webhook. Its paused backlog is then sent from the oldest to the newest, ten per second, deliveries of bulk jobs last. */
export async function resumeWebhook(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  id: number,
): Promise<Plan<Webhook>> {
  const rows = await readWebhook(context, companyId, id);
  const message = drainMessage({ companyId, webhookId: id }, "paused");
  const after = () => queue.send([{ message, delaySeconds: 0 }]).catch(() => undefined);
  if (rows.webhook.status === "active") return { ...unchanged(maskedWebhook(rows)), after };
  const now = iso(context.clock.now());
  const due = { dueShard: keys.dueShard(`webhook-${id}`), dueAt: now };
  const change = { set: { status: "active", updatedAt: now, ...due }, remove: ["failingSince"] } as const;
  return { ...changed(rows, change), after };
}

function changed(
  { webhook, registrations }: WebhookRows,
  change: { set: Pick<StoredWebhook, "status" | "updatedAt">; remove: readonly string[] },
): Plan<Webhook> {
  const { companyId, id, status } = webhook;
  return {
    writes: [{ update: keys.webhook(companyId, id), change, when: equals("status", status) }],
    answer: maskedWebhook({ webhook: { ...webhook, ...change.set }, registrations }),
  };
}
