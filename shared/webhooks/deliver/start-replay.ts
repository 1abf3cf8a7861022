/** Begins a replay: counts what it will take and leaves the sending to the queue. */
import { randomUUID } from "node:crypto";
import type { DeliveryQueue } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { any, missing, present } from "#shared/db/expression.ts";
import { DELIVERY_SHARDS, keys } from "#shared/db/keys.ts";
import { replayKeys } from "#shared/db/replay-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ApiError, failedAt, notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { idsOf, isTaken, rangeOf, replayDue, replayMessage, Standing } from "#shared/webhooks/deliver/replay.ts";
import { type Replayed, type ReplayRange, StoredReplay } from "#shared/webhooks/replay-schema.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Fields of a delivery that are read to count it. */
const counted = ["type", ...Object.keys(Standing.shape)];

/**
 * One at a time per webhook: asking for the same again while it goes on changes nothing, and for another one is a conflict.
 * Should the message be lost, the sweeper goes on with it. Throws not_found.
 */
export async function startReplay(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  webhookId: number,
  range: ReplayRange,
): Promise<Replayed> {
  const { registrations } = await readWebhook(context, companyId, webhookId);
  const key = replayKeys.replay(companyId, webhookId);
  const earlier = await context.table.get(key);
  if (earlier !== undefined && StoredReplay.parse(earlier).dueAt !== undefined) return sameAs(range, earlier);
  const now = context.clock.now();
  const asked: StoredReplay = {
    type: "replay",
    id: randomUUID(),
    companyId,
    webhookId,
    ...range,
    to: range.to ?? null,
    count: 0,
    ...replayDue(webhookId, now),
    createdAt: iso(now),
    expiresAt: Math.floor((now + limits.deliveryKeptMs) / 1_000),
  };
  const count = await countTaken(context.table, asked, idsOf(registrations));
  if (count === 0) return { count };
  try {
    const put = { ...key, ...asked, count };
    const isThere = { check: keys.webhook(companyId, webhookId), when: present };
    await context.commit([{ put, when: any(missing("pk"), missing("dueAt")) }, isThere], { count });
  } catch (error) {
    if (failedAt(error, 1) !== undefined) throw notFound("webhook");
    const standing = failedAt(error, 0);
    if (standing === undefined) throw error;
    return sameAs(range, standing.item);
  }
  await queue.send([{ message: replayMessage(companyId, webhookId), delaySeconds: 0 }]).catch(() => undefined);
  return { count };
}

function sameAs(range: ReplayRange, item: unknown): Replayed {
  const { from, to, deliveries, count } = StoredReplay.parse(item);
  const isSame = range.from === from && (range.to ?? null) === to && range.deliveries === deliveries;
  if (!isSame) throw new ApiError("conflict", "Another replay of this webhook is under way.");
  return { count };
}

/** All partitions at once. */
async function countTaken(table: Table, asked: StoredReplay, registered: ReadonlySet<number>): Promise<number> {
  const range = rangeOf(asked);
  if (range === undefined) return 0;
  const { companyId, webhookId } = asked;
  const between = replayKeys.between(undefined, range.first, range.last);
  let looked = 0;
  const counts = Array.from({ length: DELIVERY_SHARDS }, async (_, shard) => {
    const place = keys.deliveryShard(companyId, webhookId, shard);
    let count = 0;
    for await (const item of table.query({ ...place, ...between, fields: counted })) {
      if (item.type !== "delivery") continue;
      if (++looked > limits.replayedDeliveries) throw tooMany();
      if (isTaken(Standing.parse(item), asked, registered)) count++;
    }
    return count;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

function tooMany(): ApiError {
  const message = `must not have more than ${limits.replayedDeliveries} deliveries after it, up to \`to\``;
  const faults = [{ pointer: "/from", code: "too_big", message }];
  return new ApiError("validation_failed", "The range is too long for one replay.", { faults });
}
