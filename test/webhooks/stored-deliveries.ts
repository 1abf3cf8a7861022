/** Reads what publisher and sender have stored: deliveries, the limiter, and what reconciliation finds. */
import { expect } from "vitest";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { type Reconciliation, reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import type { Pipeline } from "./pipeline.ts";

type OfWebhook = Pick<Pipeline, "companyId" | "webhookId">;

export const putLimiter = (db: FaultyDynamoDb, { companyId, webhookId }: OfWebhook, fields: object = {}) =>
  db.direct.batchPut([
    { ...limiterKeys.limiter(companyId, webhookId), type: "limiter", companyId, webhookId, ...fields },
  ]);
export const limiterRowOf = (db: FaultyDynamoDb, { companyId, webhookId }: OfWebhook) =>
  db.direct.get(limiterKeys.limiter(companyId, webhookId));

/** The ids of the prospects in the bodies of all posts. */
export const sentIds = ({ posts }: Pick<Pipeline, "posts">): number[] =>
  posts.map(({ body }) => JSON.parse(body).data.prospect.id);
export const statesOf = async (at: Pipeline) => (await deliveries(at)).map(({ state }) => state);
export const deliveries = ({ db, ...hook }: Pipeline): Promise<StoredDelivery[]> => deliveriesOf(db, hook);

export async function deliveriesOf(db: FaultyDynamoDb, { companyId, webhookId }: OfWebhook): Promise<StoredDelivery[]> {
  const found: StoredDelivery[] = [];
  for (let shard = 0; shard < keys.DELIVERY_SHARDS; shard++) {
    const { pk } = keys.deliveryShard(companyId, webhookId, shard);
    for await (const item of db.direct.query({ pk })) {
      if (item.type === "delivery") found.push(z.parse(StoredDelivery, item));
    }
  }
  return found;
}

type Kept = Pick<Pipeline, "db" | "companyId" | "clock">;

/** Runs reconciliation without its repeated checks, because nothing writes concurrently. */
export const reconcileNow = ({ db, companyId, clock }: Kept): Promise<Reconciliation> =>
  reconcile({ table: db.direct, clock: { now: () => clock } }, companyId, { again: 0, wait: () => Promise.resolve() });

/** Expects that reconciliation finds no fault, and returns the counts. The message of a failed test contains `place`. */
export async function expectReconciled(at: Kept, place?: string): Promise<Omit<Reconciliation, "faults">> {
  const { faults, ...counts } = await reconcileNow(at);
  expect(faults, place).toEqual([]);
  const { matched, delivered, waiting, exhausted, cancelled } = counts;
  expect(matched, place).toBe(delivered + waiting + exhausted + cancelled);
  return counts;
}
