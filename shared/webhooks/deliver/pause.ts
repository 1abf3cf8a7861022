/** Pauses a webhook, which keeps its events from then on, and resumes it, which sends them. */

import type { DeliveryQueue } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { releaseDue, releaseMessage } from "#shared/webhooks/deliver/drain-paused.ts";
import type { StoredWebhook, Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { maskedWebhook, readWebhook, type WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

/** An attempt that is under way is not cut off. Pausing what is paused changes nothing. */
export function pauseWebhook(context: ApiContext, companyId: number, id: number): Promise<Webhook> {
  return optimistic(async () => {
    const rows = await readWebhook(context, companyId, id);
    if (rows.webhook.status === "paused") return maskedWebhook(rows);
    const now = iso(context.clock.now());
    const set = { status: "paused", updatedAt: now, dueShard: keys.pausedShard(), dueAt: now } as const;
    return changed(context, rows, { set, remove: [] });
  });
}

/** What was kept is sent oldest first, ten in a second. Should the message be lost, the sweeper goes on with it. */
export async function resumeWebhook(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  id: number,
): Promise<Webhook> {
  const resumed = await optimistic(async () => {
    const rows = await readWebhook(context, companyId, id);
    if (rows.webhook.status === "active") return maskedWebhook(rows);
    const now = context.clock.now();
    const set = { status: "active", updatedAt: iso(now), ...releaseDue(id, now) } as const;
    return changed(context, rows, { set, remove: ["failingSince"] });
  });
  await queue.send([{ message: releaseMessage(companyId, id), delaySeconds: 0 }]).catch(() => undefined);
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
