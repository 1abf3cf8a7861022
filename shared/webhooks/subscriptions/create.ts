/** Makes a webhook. Apart from the reads, since only what takes a URL needs the rules for addresses. */
import { randomUUID } from "node:crypto";
import { iso } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, any, below, missing } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { assertTarget } from "#shared/outbound/public-url.ts";
import { registrationsChange } from "#shared/webhooks/subscriptions/registrations-version.ts";
import type { NewWebhook, StoredWebhook, Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { sealedSecret } from "#shared/webhooks/subscriptions/sealed-secret.ts";
import { presentWebhook, registrationWrite, storedRegistration } from "#shared/webhooks/subscriptions/webhooks.ts";

/** The answer holds the secret in full: it is not shown again. */
export async function createWebhook(context: ApiContext, companyId: number, input: NewWebhook): Promise<Webhook> {
  const [id] = await Promise.all([context.ids.next(), assertTarget(input.url, setting("WEBHOOK_URL_POLICY"))]);
  const nowMs = context.clock.now();
  const now = iso(nowMs);
  const secretKey = input.secretKey ?? randomUUID();
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
  };
  const writes: Write[] = [counted, { put: { ...keys.webhook(companyId, id), ...webhook }, when: absent }];
  const made = presentWebhook({ webhook, registrations }, secretKey);
  await context.commit([...writes, ...registrations.map(registrationWrite)], made).catch((error: unknown) => {
    if (!(error instanceof ConditionFailed)) throw error;
    throw new ApiError("conflict", `A company may have at most ${limits.webhooksPerCompany} webhooks.`);
  });
  return made;
}
