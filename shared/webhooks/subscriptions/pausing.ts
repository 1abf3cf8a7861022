/** Pauses and resumes webhooks. */
import type { DeliveryQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import { drainMessage } from "#shared/webhooks/messages.ts";
import type { StoredWebhook, Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { maskedWebhook, readWebhook, type WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

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
