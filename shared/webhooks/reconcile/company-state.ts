/** All that the table has of one webhook's deliveries, for the books of its company. */

import type { Item } from "#shared/db/item.ts";
import { DELIVERY_SHARDS, keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { replayKeys } from "#shared/db/replay-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { type Slot, StoredGate, slotsIn } from "#shared/webhooks/limiter/limiter.ts";
import { addHeld, type Entries } from "#shared/webhooks/reconcile/due-index.ts";
import { StoredReplay } from "#shared/webhooks/replay-schema.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import type { WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

interface Rows {
  readonly deliveries: Map<string, StoredDelivery>;
  readonly attempts: Map<string, StoredAttempt[]>;
  /** Deliveries of which a row is none. */
  readonly unreadable: string[];
}

/** One webhook's part of the table, whether its row is there or not. */
export interface Account extends Rows {
  readonly companyId: number;
  readonly webhookId: number;
  readonly webhook: StoredWebhook | undefined;
  readonly registered: ReadonlySet<number>;
  readonly entries: Entries;
  readonly gate: StoredGate | undefined;
  readonly slots: readonly Slot[];
  readonly replay: StoredReplay | undefined;
  readonly now: number;
}

export async function readAccount(
  table: Table,
  companyId: number,
  webhookId: number,
  rows: WebhookRows | undefined,
  entries: Entries,
  now: number,
): Promise<Account> {
  const [gate, replay] = await Promise.all([
    table.get(gateKeys.gate(companyId, webhookId)),
    table.get(replayKeys.replay(companyId, webhookId)),
    addHeld(table, companyId, webhookId, entries),
  ]);
  return {
    companyId,
    webhookId,
    webhook: rows?.webhook,
    registered: new Set(rows?.registrations.map(({ id }) => id)),
    entries,
    gate: gate === undefined ? undefined : StoredGate.parse(gate),
    slots: slotsIn(gate ?? {}),
    replay: replay === undefined ? undefined : StoredReplay.parse(replay),
    now,
    ...(await readRows(table, companyId, webhookId, now)),
  };
}

async function readRows(table: Table, companyId: number, webhookId: number, now: number): Promise<Rows> {
  const rows: Rows = { deliveries: new Map(), attempts: new Map(), unreadable: [] };
  const shards = Array.from({ length: DELIVERY_SHARDS }, async (_, shard) => {
    for await (const item of table.query(keys.deliveryShard(companyId, webhookId, shard))) addRow(rows, item, now);
  });
  await Promise.all(shards);
  return rows;
}

function addRow({ deliveries, attempts, unreadable }: Rows, item: Item, now: number): void {
  if (typeof item.expiresAt === "number" && isOver(item.expiresAt, now)) return;
  const [, id = String(item.sk)] = /^D#([^#]+)/.exec(String(item.sk)) ?? [];
  try {
    if (item.type === "attempt") attempts.set(id, [...(attempts.get(id) ?? []), StoredAttempt.parse(item)]);
    else deliveries.set(id, StoredDelivery.parse(item));
  } catch {
    unreadable.push(id);
  }
}

/** The table takes rows away some time after they are over: until then they count no more. */
export const isOver = (expiresAt: number, now: number): boolean => expiresAt * 1_000 <= now;
