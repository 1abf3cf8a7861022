/**
 * Handles messages that ask for attempts of deliveries. An attempt is recorded before its message is deleted. After a crash, the queue
 * therefore delivers the message again.
 */
import { allEnded } from "#shared/all-ended.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { log } from "#shared/log.ts";
import type { Ends, Received } from "#shared/queue-consumer.ts";
import { addToPausedBacklog } from "#shared/webhooks/deliver/paused-backlog.ts";
import { pendingOf, sendWithSlot } from "#shared/webhooks/deliver/send.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import {
  acquireSlot,
  addToThrottledBacklog,
  capacityOf,
  newLimiter,
  type Refusal,
  readLimiter,
} from "#shared/webhooks/limiter/limiter.ts";
import { type DeliveryMessage, enqueue } from "#shared/webhooks/messages.ts";
import { cancel, guarded, newOutcome, type Outcome } from "#shared/webhooks/settle.ts";
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
    const { failed } = await attemptDeliveries(context, batch);
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
export async function attemptDeliveries(context: EventContext, batch: readonly ReceivedDelivery[]): Promise<Outcome> {
  const outcome = newOutcome();
  const items = await itemsAt(
    context.table,
    batch.flatMap(({ message }) => [
      deliveryKey(message),
      keys.webhook(...webhookOf(message)),
      limiterKeys.limiter(...webhookOf(message)),
    ]),
  );
  const asked = batch.flatMap((received) => askedBy(items, received, outcome));
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
  // The function that recorded this attempt may have been killed before it queued the next one. It is therefore queued here.
  const queued = deliveriesOf([...later, ...over.filter(({ isRepeat }) => isRepeat)]);
  const cancelled = deliveriesOf(unwanted);
  const webhooks = [...Map.groupBy(deliveriesOf(due), ({ webhookId }) => webhookId).values()];
  await Promise.all([
    guarded(outcome, queued, () => enqueue(context, queued)),
    guarded(outcome, cancelled, () => cancel(context, cancelled)),
    ...webhooks.map((deliveries) => guarded(outcome, deliveries, () => toWebhook(context, items, deliveries, outcome))),
  ]);
  return outcome;
}

async function toWebhook(
  context: EventContext,
  items: ReadonlyMap<string, Item>,
  deliveries: readonly StoredDelivery[],
  outcome: Outcome,
): Promise<void> {
  const [first] = deliveries;
  if (first === undefined) return;
  const webhook = StoredWebhook.parse(items.get(textOf(keys.webhook(...webhookOf(first)))));
  const limiter = items.get(textOf(limiterKeys.limiter(...webhookOf(first))));
  if (webhook.status === "paused") {
    await allEnded(deliveries.map((delivery) => addToPausedBacklog(context, delivery)));
  } else {
    const { bulk = [], others = [] } = Object.groupBy(deliveries, ({ isBulk }) => (isBulk ? "bulk" : "others"));
    const send = (some: readonly StoredDelivery[], isBulk?: true) =>
      guarded(outcome, some, () =>
        sendThroughLimiter({ context, webhook, isBulk, outcome, rechecks: RECHECKS }, limiter, some),
      );
    await allEnded([send(others), send(bulk, true)]);
  }
}

/** Returns a list with the requested attempt. It is empty if the delivery needs no work, or if its row is not valid (`failed`). */
function askedBy(
  items: ReadonlyMap<string, Item>,
  { message, isRepeat }: ReceivedDelivery,
  { failed }: Outcome,
): Asked[] {
  const { companyId, webhookId, deliveryId, attempt } = message;
  const item = items.get(textOf(deliveryKey(message)));
  if (item === undefined) log.error("delivery missing", { companyId, webhookId, deliveryId });
  try {
    const delivery = item === undefined ? undefined : StoredDelivery.parse(item);
    return delivery?.state === "waiting" ? [{ delivery, attempt, isRepeat }] : [];
  } catch (error) {
    failed.set(deliveryId, error);
    return [];
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

/** A refused delivery is tried again after this many milliseconds if a slot will probably be free by then. */
const SOON_MS = 1_000;
/** A quick receiver usually frees a slot within milliseconds, but a queued message returns only after a second or more. */
export const RECHECKS = 3;
export const RECHECK_MS = 20;

interface Sending {
  readonly context: EventContext;
  readonly webhook: StoredWebhook;
  /** True if the deliveries send events of single records that a bulk job has changed. */
  readonly isBulk: true | undefined;
  readonly outcome: Outcome;
  rechecks: number;
}

/**
 * Sends deliveries of one webhook. With a quick receiver, they share one slot. A delivery without a slot is queued again if one will soon
 * be free. Otherwise it joins the throttled backlog.
 */
async function sendThroughLimiter(
  sending: Sending,
  read: Item | undefined,
  deliveries: readonly StoredDelivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  const { context, webhook, isBulk, outcome } = sending;
  const limiter = await withCapacity(sending, read ?? newLimiter(webhook.companyId, webhook.id));
  const { free, takesBatches, refusal } = capacityOf(limiter, context.clock.now(), context.senders, isBulk);
  const groups = takesBatches ? [deliveries] : deliveries.map((delivery) => [delivery]);
  const refused = groups.slice(free).flat();
  await Promise.all([
    ...groups.slice(0, free).map((group) => guarded(outcome, group, () => acquireAndSend(sending, limiter, group))),
    guarded(outcome, refused, () => refuse(sending, limiter, refused, refusal)),
  ]);
}

/** Returns the limiter's row. If no slot is free but one will probably be free soon, it waits and reads the row again. */
async function withCapacity(sending: Sending, read: Item): Promise<Item> {
  const { isBulk } = sending;
  const { clock, senders } = sending.context;
  for (let limiter = read; ; ) {
    const { free, refusal } = capacityOf(limiter, clock.now(), senders, isBulk);
    const next = free === 0 && refusal.kind === "soon" ? await recheck(sending) : undefined;
    if (next === undefined) return limiter;
    limiter = next;
  }
}

async function recheck(sending: Sending): Promise<Item | undefined> {
  const { context, webhook } = sending;
  if (sending.rechecks === 0) return undefined;
  sending.rechecks--;
  await context.wait(RECHECK_MS);
  return readLimiter(context, webhook.companyId, webhook.id);
}

async function acquireAndSend(sending: Sending, read: Item, group: readonly StoredDelivery[]): Promise<void> {
  const { context, webhook, isBulk, outcome } = sending;
  const { companyId, id: webhookId } = webhook;
  let limiter = read;
  for (let left = group; left.length > 0; ) {
    const acquired = await acquireSlot(context, { companyId, webhookId, isBulk, ids: left.map(({ id }) => id) });
    if (acquired.kind === "acquired") return sendWithSlot(context, webhook, left, acquired.slot, outcome);
    const next = acquired.kind === "soon" ? await recheck(sending) : undefined;
    if (next !== undefined) {
      limiter = next;
      continue;
    }
    if (acquired.kind !== "inFlight") return refuse(sending, limiter, left, acquired);
    const { ids, until } = acquired;
    const isInFlight = ({ id }: StoredDelivery): boolean => ids.includes(id);
    const pending = await pendingOf(context, left.filter(isInFlight));
    await enqueue(
      context,
      pending.map((delivery) => ({ ...delivery, dueAt: until })),
    );
    left = left.filter((delivery) => !isInFlight(delivery));
  }
}

async function refuse(
  { context, outcome }: Sending,
  limiter: Item,
  deliveries: readonly StoredDelivery[],
  refusal: Refusal,
): Promise<void> {
  for (const { id } of deliveries) outcome.throttled.add(id);
  if (refusal.kind !== "soon") return addToThrottledBacklog(context, deliveries, refusal, limiter);
  const dueAt = iso(context.clock.now() + SOON_MS);
  // The drain sends a delivery in the throttled backlog without a message, if the limiter's row has the mark. A killed sender may have left
  // no mark, so it is set here if it is missing.
  const inBacklog = deliveries.filter(({ companyId, webhookId, dueShard }) =>
    keys.isThrottledBacklog(companyId, webhookId, dueShard),
  );
  await addToThrottledBacklog(context, inBacklog, { kind: "full" }, limiter);
  const own = deliveries.filter(({ id, dueShard }) => dueShard === keys.dueShard(id));
  await enqueue(
    context,
    own.map((delivery) => ({ ...delivery, dueAt })),
  );
}
