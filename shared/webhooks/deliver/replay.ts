/** Sends a webhook's deliveries of some time again: oldest first, at a bounded rate, in steps that any message can go on with. */
import * as z from "zod/mini";
import { delaySecondsUntil } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, equals, missing } from "#shared/db/expression.ts";
import type { Item } from "#shared/db/item.ts";
import { DELIVERY_SHARDS, keys } from "#shared/db/keys.ts";
import { replayKeys } from "#shared/db/replay-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { dueAgain } from "#shared/webhooks/deliver/redeliver.ts";
import { messageFor, type ReplayMessage, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { idsSince } from "#shared/webhooks/delivery-id.ts";
import { merged } from "#shared/webhooks/merged.ts";
import { StoredReplay } from "#shared/webhooks/replay-schema.ts";
import type { StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { readWebhooks } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Deliveries that one step sends, and that it looks at: few of them may be wanted. */
const STEP = 50;
const LOOKED_AT = 500;
/** As after a pause: a receiver gets no more of what it missed than this in a second, beside what is new. */
const PER_SECOND = 10;
/** Rows of one page of one partition: a step reads few more than it takes. */
const PAGE_ITEMS = 16;

export const replayMessage = (companyId: number, webhookId: number): ReplayMessage => ({
  v: 1,
  replay: true,
  companyId,
  webhookId,
});

export const replayDue = (webhookId: number, dueMs: number) => ({
  dueShard: keys.dueShard(`replay-${webhookId}`),
  dueAt: iso(dueMs),
});

/** First and last ids of its range, cut short; undefined where nothing lies between them. */
export function rangeOf({ from, to, createdAt }: Pick<StoredReplay, "from" | "to" | "createdAt">) {
  const last = to ?? createdAt;
  return from > last ? undefined : { first: idsSince(from), last: idsSince(last) };
}

/** What tells whether a replay takes a delivery. */
export const Standing = z.pick(StoredDelivery, {
  id: true,
  companyId: true,
  webhookId: true,
  registrationId: true,
  state: true,
  attempt: true,
  planFrom: true,
  dueShard: true,
  replayId: true,
});
type Standing = z.infer<typeof Standing>;

/**
 * What waits is taken once it has failed: what has not is on its way, or waits for its delay. What a pause or a gate holds is
 * sent from there. What was cancelled stays so, and nothing is sent for a registration that is gone.
 */
export function isTaken(
  { id, registrationId, state, attempt, planFrom, dueShard }: Standing,
  { deliveries }: Pick<StoredReplay, "deliveries">,
  registered: ReadonlySet<number>,
): boolean {
  if (registrationId !== null && !registered.has(registrationId)) return false;
  if (state === "exhausted") return true;
  if (state === "delivered") return deliveries === "all";
  return state === "waiting" && attempt > planFrom && dueShard === keys.dueShard(id);
}

export const idsOf = (registrations: readonly StoredRegistration[]): ReadonlySet<number> =>
  new Set(registrations.map(({ id }) => id));

/** One step. Whoever comes second changes nothing. */
export async function replay(context: EventContext, { companyId, webhookId }: ReplayMessage): Promise<void> {
  const item = await context.table.get(replayKeys.replay(companyId, webhookId));
  const standing = item === undefined ? undefined : StoredReplay.parse(item);
  if (standing?.dueAt === undefined) return;
  const now = context.clock.now();
  const waitMs = Date.parse(standing.dueAt) - now;
  // An earlier step spoke for this time: another message is on its way.
  if (waitMs > 0) return again(context, companyId, webhookId, waitMs);
  const { taken, cursor } = await nextOf(context.table, standing);
  await sendAgain(context, standing, taken);
  const stepMs = (taken.length / PER_SECOND) * 1_000;
  if (!(await takeStep(context.table, standing, cursor, now + stepMs))) return;
  if (cursor !== undefined) await again(context, companyId, webhookId, stepMs);
}

interface Part {
  readonly taken: readonly StoredDelivery[];
  /** The last one that was looked at; undefined where there are no more. */
  readonly cursor: string | undefined;
}

async function nextOf(table: Table, standing: StoredReplay): Promise<Part> {
  const { companyId, webhookId, id } = standing;
  const webhooks = await readWebhooks(table, companyId);
  const rows = webhooks.find(({ webhook }) => webhook.id === webhookId);
  if (rows === undefined) return { taken: [], cursor: undefined };
  const registered = idsOf(rows.registrations);
  const taken: StoredDelivery[] = [];
  let looked = 0;
  for await (const delivery of oldestFirst(table, standing)) {
    if (delivery.replayId !== id && isTaken(delivery, standing, registered)) taken.push(delivery);
    if (taken.length === STEP || ++looked === LOOKED_AT) return { taken, cursor: delivery.id };
  }
  return { taken, cursor: undefined };
}

function oldestFirst(table: Table, standing: StoredReplay): AsyncGenerator<StoredDelivery, void, undefined> {
  const { companyId, webhookId, cursor } = standing;
  const range = rangeOf(standing);
  const shards = range === undefined ? 0 : DELIVERY_SHARDS;
  const parts = Array.from({ length: shards }, (_, shard) => {
    const place = keys.deliveryShard(companyId, webhookId, shard);
    const between = replayKeys.between(cursor, range?.first ?? "", range?.last ?? "");
    return deliveriesIn(table.query({ ...place, ...between, pageItems: PAGE_ITEMS }));
  });
  return merged(parts, (a, b) => a.id < b.id);
}

async function* deliveriesIn(items: AsyncIterable<Item>): AsyncGenerator<StoredDelivery, undefined, undefined> {
  for await (const item of items) if (item.type === "delivery") yield StoredDelivery.parse(item);
}

/** A tenth of a second apart. One that changes meanwhile, or is being sent, is left to itself. */
async function sendAgain(
  { table, clock, queue }: EventContext,
  { id }: StoredReplay,
  taken: readonly StoredDelivery[],
) {
  const now = clock.now();
  const queued: { message: ReturnType<typeof messageFor>; delaySeconds: number }[] = [];
  for (const [i, delivery] of taken.entries()) {
    const dueMs = now + (i * 1_000) / PER_SECOND;
    const { next, write } = dueAgain(delivery, iso(dueMs), iso(now), id);
    try {
      await table.write(write);
      queued.push({ message: messageFor(next), delaySeconds: delaySecondsUntil(dueMs, now) });
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error;
    }
  }
  await queue.send(queued);
}

/** Only after its deliveries are due: a step that is cut off is done again, and leaves alone what it has done. */
async function takeStep(
  table: Table,
  { companyId, webhookId, id, cursor: from }: StoredReplay,
  cursor: string | undefined,
  nextMs: number,
): Promise<boolean> {
  const change =
    cursor === undefined ? { remove: ["dueShard", "dueAt"] } : { set: { cursor, ...replayDue(webhookId, nextMs) } };
  const when = all(equals("id", id), from === undefined ? missing("cursor") : equals("cursor", from));
  try {
    await table.write({ update: replayKeys.replay(companyId, webhookId), change, when });
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed) return false;
    throw error;
  }
}

const again = ({ queue }: EventContext, companyId: number, webhookId: number, inMs: number): Promise<void> =>
  queue.send([{ message: replayMessage(companyId, webhookId), delaySeconds: Math.ceil(inMs / 1_000) }]);
