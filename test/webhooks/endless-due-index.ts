/**
 * Simulates the secondary index of due deliveries with any number of entries. It generates each entry when the entry is read, so that the
 * entries need no memory.
 */
import { iso } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { START } from "./delivery-pipeline.ts";

/**
 * Returns a copy of the table whose index also contains `webhooks` paused webhooks of one company. The backlog of each webhook has `each`
 * deliveries.
 */
export function withPausedBacklogs(table: Table, companyId: number, webhooks: number, each: number): Table {
  const dueAt = iso(START);
  const shard = keys.pausedBacklogShard(companyId, 0).slice(0, -1);
  return {
    ...table,
    query: async function* (spec) {
      for (let id = 1; spec.pk === keys.pausedWebhooksShard() && id <= webhooks; id++) {
        yield { ...keys.webhook(companyId, id), dueShard: spec.pk, dueAt };
      }
      const isPausedBacklog = spec.index !== undefined && spec.pk.startsWith(shard) && !spec.pk.endsWith("#BULK");
      for (let i = 0; isPausedBacklog && i < each; i++) {
        const id = `dlv_${String(i).padStart(29, "0")}`;
        yield { ...keys.delivery(companyId, Number(spec.pk.slice(shard.length)), id), dueShard: spec.pk, dueAt };
      }
      yield* table.query(spec);
    },
  };
}

/**
 * Returns a copy of the table whose index also contains `count` overdue deliveries. These deliveries have no rows, so every conditional
 * write to them fails.
 */
export function withOverdue(table: Table, companyId: number, count: number): Table {
  const shards = keys.dueShards();
  function* entries(shard: number): Generator<Item> {
    for (let i = shard; i < count; i += shards.length) {
      const id = `dlv_${String(i).padStart(29, "0")}`;
      const dueAt = iso(START - 86_400_000 + i);
      yield { ...keys.delivery(companyId, 1, id), dueShard: shards[shard], dueAt };
    }
  }
  return {
    ...table,
    query: async function* (spec) {
      const shard = spec.index === undefined ? -1 : shards.indexOf(spec.pk);
      if (shard !== -1) yield* entries(shard);
      yield* table.query(spec);
    },
  };
}
