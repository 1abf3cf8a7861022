/** Pauses a webhook, which keeps its events from then on, and resumes it, which sends them. */
import { iso } from "#shared/clock.ts";
import { equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { releaseDue, releaseMessage } from "#shared/deliveries/release.ts";
import type { DeliveryQueue } from "#shared/queue.ts";
import type { StoredWebhook, Webhook } from "#shared/webhooks/schema.ts";
import { maskedWebhook, readWebhook, type WebhookRows } from "#shared/webhooks/webhooks.ts";
import type { World } from "#shared/world.ts";

/** An attempt that is under way is not cut off. Pausing what is paused changes nothing. */
export function pauseWebhook(world: World, companyId: number, id: number): Promise<Webhook> {
  return optimistic(async () => {
    const rows = await readWebhook(world, companyId, id);
    if (rows.webhook.status === "paused") return maskedWebhook(rows);
    const now = iso(world.clock.now());
    const set = { status: "paused", updatedAt: now, dueShard: keys.pausedShard(), dueAt: now } as const;
    return changed(world, rows, { set, remove: [] });
  });
}

/** What was kept is sent oldest first, ten in a second. Should the message be lost, the sweeper goes on with it. */
export async function resumeWebhook(
  world: World,
  queue: DeliveryQueue,
  companyId: number,
  id: number,
): Promise<Webhook> {
  const resumed = await optimistic(async () => {
    const rows = await readWebhook(world, companyId, id);
    if (rows.webhook.status === "active") return maskedWebhook(rows);
    const now = world.clock.now();
    const set = { status: "active", updatedAt: iso(now), ...releaseDue(id, now) } as const;
    return changed(world, rows, { set, remove: ["failingSince"] });
  });
  await queue.send([{ message: releaseMessage(companyId, id), delaySeconds: 0 }]).catch(() => undefined);
  return resumed;
}

async function changed(
  world: World,
  { webhook, registrations }: WebhookRows,
  change: { set: Pick<StoredWebhook, "status" | "updatedAt">; remove: string[] },
): Promise<Webhook> {
  const { companyId, id, status } = webhook;
  const shown = maskedWebhook({ webhook: { ...webhook, ...change.set }, registrations });
  await world.commit([{ update: keys.webhook(companyId, id), change, when: equals("status", status) }], shown);
  return shown;
}
