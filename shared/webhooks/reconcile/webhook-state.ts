/** Reads all rows about the deliveries of one webhook, for reconciliation. */
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { DELIVERY_SHARDS } from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { limiterKeys, replayKeys } from "#shared/db/webhook-keys.ts";
import { StoredReplay } from "#shared/webhooks/deliver/replay.ts";
import { StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { type Slot, StoredLimiter, slotsIn } from "#shared/webhooks/limiter/limiter.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import type { WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

export interface DueEntry {
  readonly dueShard: string;
  readonly dueAt: string;
}

/** Maps the id of a delivery to its entries in the due index. */
export type DueEntries = Map<string, DueEntry[]>;

/** Reads a company's entries in the due index, grouped by webhook, without paused and throttled backlogs. */
export async function readDue(table: Reads, companyId: number): Promise<Map<number, DueEntries>> {
  const found = new Map<number, DueEntries>();
  const own = new RegExp(`^C#${companyId}#D#(\\d+)#\\d+$`);
  await Promise.all(
    keys.dueShards().map(async (shard) => {
      for await (const item of table.query({ pk: shard, index: "due" })) {
        const [, webhookId] = own.exec(String(item.pk)) ?? [];
        if (webhookId === undefined) continue;
        const entries: DueEntries = found.get(Number(webhookId)) ?? new Map();
        found.set(Number(webhookId), entries);
        addEntry(entries, item);
      }
    }),
  );
  return found;
}

async function addBacklogs(table: Reads, companyId: number, webhookId: number, entries: DueEntries): Promise<void> {
  const paused = keys.pausedBacklogShards(companyId, webhookId);
  for (const pk of [...paused, ...keys.throttledBacklogShards(companyId, webhookId)]) {
    for await (const item of table.query({ pk, index: "due" })) addEntry(entries, item);
  }
}

function addEntry(entries: DueEntries, item: Item): void {
  const id = String(item.sk).slice("D#".length);
  const entry = { dueShard: String(item.dueShard), dueAt: String(item.dueAt) };
  entries.set(id, [...(entries.get(id) ?? []), entry]);
}

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
  readonly entries: DueEntries;
  readonly limiter: StoredLimiter | undefined;
  readonly slots: readonly Slot[];
  readonly replay: StoredReplay | undefined;
  readonly now: number;
}

/** Reads the state of a webhook. This function adds the entries of its backlogs to `due`. */
export async function readWebhookState(
  table: Reads,
  { companyId, webhookId }: Pick<WebhookState, "companyId" | "webhookId">,
  rows: WebhookRows | undefined,
  due: DueEntries,
  now: number,
): Promise<WebhookState> {
  const [limiter, replay] = await Promise.all([
    table.get(limiterKeys.limiter(companyId, webhookId)),
    table.get(replayKeys.replay(companyId, webhookId)),
    addBacklogs(table, companyId, webhookId, due),
  ]);
  return {
    companyId,
    webhookId,
    webhook: rows?.webhook,
    registered: new Set(rows?.registrations.map(({ id }) => id)),
    entries: due,
    limiter: limiter === undefined ? undefined : StoredLimiter.parse(limiter),
    slots: slotsIn(limiter ?? {}),
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
