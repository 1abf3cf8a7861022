/** What the due index says of a company's deliveries, for its books. */

import type { Item } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface Entry {
  readonly dueShard: string;
  readonly dueAt: string;
}

/** By delivery. */
export type Entries = Map<string, Entry[]>;

/** What is due by itself, by webhook. */
export async function readDue(table: Table, companyId: number): Promise<Map<number, Entries>> {
  const found = new Map<number, Entries>();
  const own = new RegExp(`^C#${companyId}#D#(\\d+)#\\d+$`);
  await Promise.all(
    keys.dueShards().map(async (shard) => {
      for await (const item of table.query({ pk: shard, index: "due" })) {
        const [, webhookId] = own.exec(String(item.pk)) ?? [];
        if (webhookId === undefined) continue;
        const entries: Entries = found.get(Number(webhookId)) ?? new Map();
        found.set(Number(webhookId), entries);
        addEntry(entries, item);
      }
    }),
  );
  return found;
}

/** Adds what a paused webhook keeps and what waits at the gate. */
export async function addHeld(table: Table, companyId: number, webhookId: number, entries: Entries): Promise<void> {
  for (const pk of [keys.heldShard(companyId, webhookId), keys.gatedShard(companyId, webhookId)]) {
    for await (const item of table.query({ pk, index: "due" })) addEntry(entries, item);
  }
}

function addEntry(entries: Entries, item: Item): void {
  const id = String(item.sk).slice("D#".length);
  const entry = { dueShard: String(item.dueShard), dueAt: String(item.dueAt) };
  entries.set(id, [...(entries.get(id) ?? []), entry]);
}
