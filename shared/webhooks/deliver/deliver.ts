/** Makes attempts of deliveries. An attempt is recorded before its message is deleted, so after a crash SQS delivers the message again. */
import { allEnded } from "#shared/all-ended.ts";
import { at } from "#shared/at.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { log } from "#shared/log.ts";
import type { Ends, Received } from "#shared/queue-consumer.ts";
import { addToPausedBacklog, addToThrottledBacklog } from "#shared/webhooks/deliver/backlogs.ts";
import { pendingOf, sendWithSlot } from "#shared/webhooks/deliver/send.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import {
  acquireSlot,
  freeSlots,
  type Limiter,
  limiterOf,
  type Refusal,
  readLimiter,
  refusalOf,
  takesBatches,
} from "#shared/webhooks/limiter/limiter.ts";
import { type DeliveryMessage, enqueue } from "#shared/webhooks/messages.ts";
import { cancel, guarded, type Left } from "#shared/webhooks/settle.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

export type ReceivedDelivery = Pick<Received<DeliveryMessage>, "message" | "isRepeat">;

interface Asked {
  readonly delivery: StoredDelivery;
  readonly attempt: number;
  readonly isRepeat: boolean;
}

/** Returns the result of each message, in the order of the batch. The queue delivers a rejected message again. */
export async function deliver(context: EventContext, batch: readonly ReceivedDelivery[]): Promise<Ends> {
  try {
    const left = await attemptDeliveries(context, batch);
    const failed = new Map(left.flatMap((one) => ("error" in one ? [[one.id, one.error] as const] : [])));
    return batch.map(({ message: { deliveryId } }) =>
      failed.has(deliveryId)
        ? { status: "rejected", reason: failed.get(deliveryId) }
        : { status: "fulfilled", value: undefined },
    );
  } catch (reason) {
    return batch.map(() => ({ status: "rejected", reason }));
  }
}

/** Makes the attempts, and cancels deliveries whose webhook or registration is deleted. Throws if the rows cannot be read. */
export async function attemptDeliveries(context: EventContext, batch: readonly ReceivedDelivery[]): Promise<Left[]> {
  const items = await itemsAt(
    context.table,
    batch.flatMap(({ message }) => [
      deliveryKey(message),
      keys.webhook(...webhookOf(message)),
      limiterKeys.limiter(...webhookOf(message)),
    ]),
  );
  const found = batch.flatMap((received) => askedBy(items, received));
  const asked = found.flatMap((one) => ("delivery" in one ? [one] : []));
  const registered = await itemsAt(
    context.table,
    asked.flatMap(({ delivery }) => registrationOf(delivery)),
  );
  const isWanted = (delivery: StoredDelivery): boolean =>
    items.has(textOf(keys.webhook(...webhookOf(delivery)))) &&
    registrationOf(delivery).every((key) => registered.has(textOf(key)));
  const {
    over = [],
    unwanted = [],
    later = [],
    due = [],
  } = Object.groupBy(asked, ({ delivery, attempt }) => {
    if (delivery.attempt !== attempt) return "over";
    if (!isWanted(delivery)) return "unwanted";
    return Date.parse(delivery.dueAt) > context.clock.now() ? "later" : "due";
  });
  // `over`: the attempt is already recorded. If the message is a repeat, a sender may have been killed before it queued the next attempt.
  const queued = deliveriesOf([...later, ...over.filter(({ isRepeat }) => isRepeat)]);
  const cancelled = deliveriesOf(unwanted);
  const webhooks = [...Map.groupBy(deliveriesOf(due), ({ webhookId }) => webhookId).values()];
  const left = await Promise.all([
    found.filter((one) => "error" in one),
    guarded(queued, () => enqueue(context, queued)),
    guarded(cancelled, () => cancel(context, cancelled)),
    ...webhooks.map((deliveries) => guarded(deliveries, () => toWebhook(context, items, deliveries))),
  ]);
  return left.flat();
}

async function toWebhook(
  context: EventContext,
  items: ReadonlyMap<string, Item>,
  deliveries: readonly StoredDelivery[],
): Promise<readonly Left[]> {
  const first = at(deliveries, 0);
  const webhook = StoredWebhook.parse(items.get(textOf(keys.webhook(...webhookOf(first)))));
  const limiter = limiterOf(first, items.get(textOf(limiterKeys.limiter(...webhookOf(first)))));
  if (webhook.status === "paused") {
    await allEnded(deliveries.map((delivery) => addToPausedBacklog(context, delivery)));
    return [];
  }
  const { bulk = [], others = [] } = Object.groupBy(deliveries, ({ isBulk }) => (isBulk ? "bulk" : "others"));
  const send = (some: readonly StoredDelivery[], isBulk?: true) =>
    guarded(some, () => sendThroughLimiter({ context, webhook, isBulk }, limiter, some));
  return (await allEnded([send(others), send(bulk, true)])).flat();
}

/** Returns a list with the requested attempt, or with an error if the row is not valid. It is empty if the delivery needs no work. */
function askedBy(
  items: ReadonlyMap<string, Item>,
  { message, isRepeat }: ReceivedDelivery,
): (Asked | { readonly id: string; readonly error: unknown })[] {
  const { companyId, webhookId, deliveryId, attempt } = message;
  const item = items.get(textOf(deliveryKey(message)));
  if (item === undefined) {
    log.error("delivery missing", { companyId, webhookId, deliveryId });
    return [];
  }
  try {
    // The schema throws an error of its own if a body cannot be unpacked, which `safeParse` would not catch.
    const delivery = StoredDelivery.parse(item);
    return delivery.state === "waiting" ? [{ delivery, attempt, isRepeat }] : [];
  } catch (error) {
    return [{ id: deliveryId, error }];
  }
}

const deliveriesOf = (asked: readonly Asked[]): StoredDelivery[] => [
  ...new Map(asked.map(({ delivery }) => [delivery.id, delivery])).values(),
];

async function itemsAt(table: Table, wanted: readonly Key[]): Promise<ReadonlyMap<string, Item>> {
  const distinct = new Map(wanted.map((key) => [textOf(key), key]));
  const items = distinct.size === 0 ? [] : await table.batchGet([...distinct.values()]);
  return new Map(items.map((item) => [`${item.pk} ${item.sk}`, item]));
}

const textOf = ({ pk, sk }: Key): string => `${pk} ${sk}`;
const webhookOf = ({ companyId, webhookId }: Pick<StoredDelivery, "companyId" | "webhookId">) =>
  [companyId, webhookId] as const;
const deliveryKey = (message: DeliveryMessage): Key => keys.delivery(...webhookOf(message), message.deliveryId);

/** Returns the key of the delivery's registration as a list. The list is empty for a test delivery, which has no registration. */
const registrationOf = ({ companyId, webhookId, registrationId }: StoredDelivery): Key[] =>
  registrationId === null ? [] : [keys.registration(companyId, webhookId, registrationId)];

/** Milliseconds after which a refused delivery is tried again, if a slot will probably be free by then. */
const SOON_MS = 1_000;
/** How often a sender looks again for a free slot. A quick receiver frees one within milliseconds, but a queued message takes a second. */
export const RECHECKS = 3;
export const RECHECK_MS = 20;

interface Sending {
  readonly context: EventContext;
  readonly webhook: StoredWebhook;
  readonly isBulk: true | undefined;
}

/** Deliveries to a quick receiver share one slot. If a slot will probably be free soon, the sender tries `rechecks` times more. */
async function sendThroughLimiter(
  sending: Sending,
  limiter: Limiter,
  deliveries: readonly StoredDelivery[],
  rechecks = RECHECKS,
): Promise<readonly Left[]> {
  if (deliveries.length === 0) return [];
  const { context, isBulk } = sending;
  const now = context.clock.now();
  const groups = takesBatches(limiter) ? [deliveries] : deliveries.map((delivery) => [delivery]);
  const free = freeSlots(limiter, now, context.senders, isBulk);
  const refused = groups.slice(free).flat();
  const left = await Promise.all([
    ...groups.slice(0, free).map((group) => guarded(group, () => acquireAndSend(sending, limiter, group, rechecks))),
    guarded(refused, () => retryOrRefuse(sending, limiter, refused, refusalOf(limiter, now), rechecks)),
  ]);
  return left.flat();
}

async function acquireAndSend(
  sending: Sending,
  limiter: Limiter,
  group: readonly StoredDelivery[],
  rechecks: number,
): Promise<readonly Left[]> {
  const { context, webhook, isBulk } = sending;
  const claim = { companyId: webhook.companyId, webhookId: webhook.id, isBulk, ids: group.map(({ id }) => id) };
  const acquired = await acquireSlot(context, claim);
  if (acquired.kind === "acquired") return sendWithSlot(context, webhook, group, acquired.slot);
  if (acquired.kind !== "inFlight") return retryOrRefuse(sending, limiter, group, acquired, rechecks);
  const { ids, until } = acquired;
  const { others = [], held = [] } = Object.groupBy(group, ({ id }) => (ids.includes(id) ? "held" : "others"));
  const pending = await pendingOf(context, held);
  await enqueue(
    context,
    pending.map((delivery) => ({ ...delivery, dueAt: until })),
  );
  return others.length === 0 ? [] : acquireAndSend(sending, limiter, others, rechecks);
}

/** Handles deliveries that the limiter refuses: queues them again if a slot will soon be free, or adds them to the throttled backlog. */
async function retryOrRefuse(
  sending: Sending,
  limiter: Limiter,
  deliveries: readonly StoredDelivery[],
  refusal: Refusal,
  rechecks: number,
): Promise<readonly Left[]> {
  if (deliveries.length === 0) return [];
  const { context } = sending;
  if (refusal.kind === "soon" && rechecks > 0) {
    await context.wait(RECHECK_MS);
    return sendThroughLimiter(sending, await readLimiter(context, limiter), deliveries, rechecks - 1);
  }
  const left = deliveries.map(({ id }) => ({ id, isThrottled: true as const }));
  if (refusal.kind !== "soon") {
    await addToThrottledBacklog(context, deliveries, refusal, limiter);
    return left;
  }
  const dueAt = iso(context.clock.now() + SOON_MS);
  // Deliveries in the throttled backlog need no message. They need the mark in the limiter's row, which a killed sender may not have set.
  const inBacklog = deliveries.filter(({ companyId, webhookId, dueShard }) =>
    keys.isThrottledBacklog(companyId, webhookId, dueShard),
  );
  await addToThrottledBacklog(context, inBacklog, { kind: "full" }, limiter);
  const own = deliveries.filter(({ id, dueShard }) => dueShard === keys.dueShard(id));
  await enqueue(
    context,
    own.map((delivery) => ({ ...delivery, dueAt })),
  );
  return left;
}
