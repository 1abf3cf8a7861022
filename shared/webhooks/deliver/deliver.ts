/**
 * Messages of the queue -> attempts of deliveries. What is due is claimed, made, recorded and settled before its message is
 * acknowledged; a crash anywhere leaves a state from which the same message, or the sweeper, goes on. Rows of a batch are read
 * together; each webhook's deliveries then go their own way, so that no receiver waits for another's.
 */
import { allEnded } from "#shared/all-ended.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { log } from "#shared/log.ts";
import type { Ends, Received } from "#shared/queue-consumer.ts";
import { hold } from "#shared/webhooks/deliver/paused-backlog.ts";
import { throughGate } from "#shared/webhooks/deliver/through-limiter.ts";
import { type DeliveryMessage, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { guarded, newOutcome, type Outcome } from "#shared/webhooks/outcome.ts";
import { cancel, enqueue } from "#shared/webhooks/settle.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

export type ReceivedDelivery = Pick<Received<DeliveryMessage>, "message" | "isRepeat">;

/** A message and the row that it is about. */
interface Told {
  readonly delivery: StoredDelivery;
  readonly attempt: number;
  readonly isRepeat: boolean;
}

/** How each message ended, in their order. */
export async function deliver(context: EventContext, batch: readonly ReceivedDelivery[]): Promise<Ends> {
  try {
    const { failed } = await tryDeliveries(context, batch);
    return batch.map(({ message: { deliveryId } }) =>
      failed.has(deliveryId)
        ? { status: "rejected", reason: failed.get(deliveryId) }
        : { status: "fulfilled", value: undefined },
    );
  } catch (reason) {
    return batch.map(() => ({ status: "rejected", reason }));
  }
}

/** Throws where the rows of the batch cannot be read. */
export async function tryDeliveries(context: EventContext, batch: readonly ReceivedDelivery[]): Promise<Outcome> {
  const outcome = newOutcome();
  const items = await itemsAt(
    context.table,
    batch.flatMap(({ message }) => [
      deliveryKey(message),
      keys.webhook(...placeOf(message)),
      gateKeys.gate(...placeOf(message)),
    ]),
  );
  const told = batch.flatMap((received) => toldBy(items, received, outcome));
  const registered = await itemsAt(
    context.table,
    told.flatMap(({ delivery }) => registrationOf(delivery)),
  );
  const isWanted = (delivery: StoredDelivery): boolean =>
    items.has(textOf(keys.webhook(...placeOf(delivery)))) &&
    registrationOf(delivery).every((key) => registered.has(textOf(key)));
  const {
    over = [],
    unwanted = [],
    later = [],
    due = [],
  } = Object.groupBy(told, ({ delivery, attempt }) => {
    if (delivery.attempt !== attempt) return "over";
    if (!isWanted(delivery)) return "unwanted";
    return Date.parse(delivery.dueAt) > context.clock.now() ? "later" : "due";
  });
  // If whoever made the attempt of a message that comes again died before planning the next one, that is done here.
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
  const webhook = StoredWebhook.parse(items.get(textOf(keys.webhook(...placeOf(first)))));
  const gate = items.get(textOf(gateKeys.gate(...placeOf(first))));
  if (webhook.status === "paused") await allEnded(deliveries.map((delivery) => hold(context, delivery)));
  else await throughGate(context, webhook, gate, deliveries, outcome);
}

/** Nothing where there is nothing to be done for the message. */
function toldBy(
  items: ReadonlyMap<string, Item>,
  { message, isRepeat }: ReceivedDelivery,
  { failed }: Outcome,
): Told[] {
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

/** Of several messages about one delivery one counts. */
const deliveriesOf = (told: readonly Told[]): StoredDelivery[] => [
  ...new Map(told.map(({ delivery }) => [delivery.id, delivery])).values(),
];

/** By their keys, in one call. */
async function itemsAt(table: Table, places: readonly Key[]): Promise<ReadonlyMap<string, Item>> {
  const distinct = new Map(places.map((place) => [textOf(place), place]));
  const items = distinct.size === 0 ? [] : await table.batchGet([...distinct.values()]);
  return new Map(items.map((item) => [`${item.pk} ${item.sk}`, item]));
}

type Place = Pick<StoredDelivery, "companyId" | "webhookId">;

const textOf = ({ pk, sk }: Key): string => `${pk} ${sk}`;
const placeOf = ({ companyId, webhookId }: Place) => [companyId, webhookId] as const;
const deliveryKey = (message: DeliveryMessage): Key => keys.delivery(...placeOf(message), message.deliveryId);

/** None where nobody registered for it: what is tried out. */
const registrationOf = ({ companyId, webhookId, registrationId }: StoredDelivery): Key[] =>
  registrationId === null ? [] : [keys.registration(companyId, webhookId, registrationId)];
