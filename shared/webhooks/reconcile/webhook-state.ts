/** Reads all rows about the deliveries of one webhook, for reconciliation. */
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { DELIVERY_SHARDS } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { replayKeys } from "#shared/db/webhook-keys.ts";
import { StoredReplay } from "#shared/webhooks/deliver/replay.ts";
import { StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { type Limiter, readLimiter } from "#shared/webhooks/limiter/limiter.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import type { WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

export interface DueEntry {
  readonly dueShard: string;
  readonly dueAt: string;
}

/** Reads a company's deliveries in the due index, grouped by webhook, without paused and throttled backlogs. */
export async function readDue(table: Reads, companyId: number): Promise<Map<number, Item[]>> {
  const own = new RegExp(`^C#${companyId}#D#(\\d+)#\\d+$`);
  const webhookIdOf = ({ pk }: Item): string | undefined => own.exec(String(pk))?.[1];
  const found: Item[] = [];
  await Promise.all(
    keys.dueShards().map(async (shard) => {
      for await (const item of table.query({ pk: shard, index: "due" })) {
        if (webhookIdOf(item) !== undefined) found.push(item);
      }
    }),
  );
  return Map.groupBy(found, (item) => Number(webhookIdOf(item)));
}

async function readBacklogs(table: Reads, companyId: number, webhookId: number): Promise<Item[]> {
  const paused = keys.pausedBacklogShards(companyId, webhookId);
  const items: Item[] = [];
  for (const pk of [...paused, ...keys.throttledBacklogShards(companyId, webhookId)]) {
    for await (const item of table.query({ pk, index: "due" })) items.push(item);
  }
  return items;
}

const deliveryIdOf = ({ sk }: Item): string => String(sk).slice("D#".length);
const entryOf = ({ dueShard, dueAt }: Item): DueEntry => ({ dueShard: String(dueShard), dueAt: String(dueAt) });

interface Rows {
  readonly deliveries: Map<string, StoredDelivery>;
  readonly attempts: Map<string, StoredAttempt[]>;
  readonly unreadable: string[];
}

export interface WebhookState extends Rows {
  readonly companyId: number;
  readonly webhookId: number;
  readonly webhook: StoredWebhook | undefined;
  readonly registered: ReadonlySet<number>;
  /** Maps the id of a delivery to its entries in the due index. */
  readonly entries: ReadonlyMap<string, readonly DueEntry[]>;
  readonly limiter: Limiter;
  readonly replay: StoredReplay | undefined;
  readonly now: number;
}

/** `due` has the deliveries of the webhook in the due index, without its backlogs. */
export async function readWebhookState(
  table: Reads,
  { companyId, webhookId }: Pick<WebhookState, "companyId" | "webhookId">,
  rows: WebhookRows | undefined,
  due: readonly Item[],
  now: number,
): Promise<WebhookState> {
  const [limiter, replay, backlogs] = await Promise.all([
    readLimiter({ table }, { companyId, webhookId }),
    table.get(replayKeys.replay(companyId, webhookId)),
    readBacklogs(table, companyId, webhookId),
  ]);
  const ofDeliveries = [...Map.groupBy([...due, ...backlogs], deliveryIdOf)];
  return {
    companyId,
    webhookId,
    webhook: rows?.webhook,
    registered: new Set(rows?.registrations.map(({ id }) => id)),
    entries: new Map(ofDeliveries.map(([id, items]) => [id, items.map(entryOf)])),
    limiter,
    replay: replay === undefined ? undefined : StoredReplay.parse(replay),
    now,
    ...(await readRows(table, companyId, webhookId, now)),
  };
}

async function readRows(table: Reads, companyId: number, webhookId: number, now: number): Promise<Rows> {
  const rows: Rows = { deliveries: new Map(), attempts: new Map(), unreadable: [] };
  const shards = Array.from({ length: DELIVERY_SHARDS }, async (_, shard) => {
    for await (const item of table.query(keys.deliveryShard(companyId, webhookId, shard))) addRow(rows, item, now);
  });
  await Promise.all(shards);
  return rows;
}

function addRow({ deliveries, attempts, unreadable }: Rows, item: Item, now: number): void {
  if (typeof item.expiresAt === "number" && isExpired(item.expiresAt, now)) return;
  const [, id = String(item.sk)] = /^D#([^#]+)/.exec(String(item.sk)) ?? [];
  try {
    if (item.type === "attempt") attempts.set(id, [...(attempts.get(id) ?? []), StoredAttempt.parse(item)]);
    else deliveries.set(id, StoredDelivery.parse(item));
  } catch {
    unreadable.push(id);
  }
}

/** DynamoDB deletes an expired row some hours later. Until then, reconciliation must ignore it. */
export const isExpired = (expiresAt: number, now: number): boolean => expiresAt * 1_000 <= now;
