/** Sends what a webhook kept while it was paused: oldest first, at a bounded rate, in steps that any message can go on with. */
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { letGo } from "#shared/webhooks/deliver/paused-backlog.ts";
import { type ReleaseMessage, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/** Deliveries of one step. */
const STEP = 50;
/** A receiver that was away gets no more of what it missed than this in a second, beside what is new. */
const PER_SECOND = 10;
const STEP_MS = (STEP / PER_SECOND) * 1_000;
/** The due index lags behind the table: for so long after the resumption an empty look proves nothing. */
const LAG_MS = 10_000;

export const releaseMessage = (companyId: number, webhookId: number): ReleaseMessage => ({
  v: 1,
  release: true,
  companyId,
  webhookId,
});

/** Of the webhook's row: the release goes on at this time, and the sweeper sees to it. */
export const releaseDue = (webhookId: number, dueMs: number) => ({
  dueShard: keys.dueShard(`webhook-${webhookId}`),
  dueAt: iso(dueMs),
});

const Place = z.object({ pk: z.string(), sk: z.string() });

/** One step. Whoever comes second, or comes while the webhook is paused again, changes nothing. */
export async function release(context: EventContext, { companyId, webhookId }: ReleaseMessage): Promise<void> {
  const key = keys.webhook(companyId, webhookId);
  const item = await context.table.get(key);
  const webhook = item === undefined ? undefined : StoredWebhook.parse(item);
  if (webhook?.status !== "active" || webhook.dueAt === undefined) return;
  const now = context.clock.now();
  // An earlier step spoke for this time: another message is on its way.
  if (Date.parse(webhook.dueAt) > now) return again(context, companyId, webhookId, Date.parse(webhook.dueAt) - now);
  const held = await heldDeliveries(context, companyId, webhookId);
  const isOver = held.length === 0 && now - Date.parse(webhook.updatedAt) > LAG_MS;
  if (!(await takeStep(context, webhook, isOver ? undefined : now + STEP_MS))) return;
  for (const [i, delivery] of held.entries()) await letGo(context, delivery, now + (i * 1_000) / PER_SECOND);
  if (!isOver) await again(context, companyId, webhookId, STEP_MS);
}

/** The oldest ones; the index tells where they stand, the rows what they are. */
async function heldDeliveries(
  { table }: EventContext,
  companyId: number,
  webhookId: number,
): Promise<StoredDelivery[]> {
  const places: z.infer<typeof Place>[] = [];
  const held = { pk: keys.heldShard(companyId, webhookId), index: "due", pageItems: STEP } as const;
  for await (const item of table.query(held)) {
    places.push(Place.parse(item));
    if (places.length === STEP) break;
  }
  const rows = (await table.batchGet(places)).map((row) => StoredDelivery.parse(row));
  return rows.sort((a, b) => (a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : a.id < b.id ? -1 : 1));
}

/** One of several that want this step takes it. Without a next one, the webhook leaves the due index. */
async function takeStep({ table }: EventContext, webhook: StoredWebhook, nextMs: number | undefined): Promise<boolean> {
  const { companyId, id, dueAt } = webhook;
  const change = nextMs === undefined ? { remove: ["dueShard", "dueAt"] } : { set: releaseDue(id, nextMs) };
  try {
    const when = all(equals("status", "active"), equals("dueAt", dueAt));
    await table.write({ update: keys.webhook(companyId, id), change, when });
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed) return false;
    throw error;
  }
}

const again = ({ queue }: EventContext, companyId: number, webhookId: number, inMs: number): Promise<void> =>
  queue.send([{ message: releaseMessage(companyId, webhookId), delaySeconds: Math.ceil(inMs / 1_000) }]);
