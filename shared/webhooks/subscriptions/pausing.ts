/** Pauses and resumes webhooks. */
import type { DeliveryQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { drainMessage } from "#shared/webhooks/messages.ts";
import type { StoredWebhook, Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { maskedWebhook, readWebhook, type WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Pauses a webhook. Attempts that are already running continue. */
export function pauseWebhook(context: ApiContext, companyId: number, id: number): Promise<Webhook> {
  return optimistic(async () => {
    const rows = await readWebhook(context, companyId, id);
    if (rows.webhook.status === "paused") return maskedWebhook(rows);
    const now = iso(context.clock.now());
    const set = { status: "paused", updatedAt: now, dueShard: keys.pausedWebhooksShard(), dueAt: now } as const;
    return changed(context, rows, { set, remove: [] });
  });
}

/** Resumes a webhook. Its paused backlog is then sent from the oldest to the newest, ten per second, deliveries of bulk jobs last. */
export async function resumeWebhook(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  id: number,
): Promise<Webhook> {
  const resumed = await optimistic(async () => {
    const rows = await readWebhook(context, companyId, id);
    if (rows.webhook.status === "active") return maskedWebhook(rows);
    const now = iso(context.clock.now());
    const due = { dueShard: keys.dueShard(`webhook-${id}`), dueAt: now };
    return changed(context, rows, { set: { status: "active", updatedAt: now, ...due }, remove: ["failingSince"] });
  });
  const message = drainMessage({ companyId, webhookId: id }, "paused");
  await queue.send([{ message, delaySeconds: 0 }]).catch(() => undefined);
  return resumed;
}

async function changed(
  context: ApiContext,
  { webhook, registrations }: WebhookRows,
  change: { set: Pick<StoredWebhook, "status" | "updatedAt">; remove: string[] },
): Promise<Webhook> {
  const { companyId, id, status } = webhook;
  const shown = maskedWebhook({ webhook: { ...webhook, ...change.set }, registrations });
  await context.commit([{ update: keys.webhook(companyId, id), change, when: equals("status", status) }], shown);
  return shown;
}
