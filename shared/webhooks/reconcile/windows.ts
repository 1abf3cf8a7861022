/** Of windows, for the books: an event that joined is a row, and the delivery's row or the open window says how many there are. */
import * as z from "zod/mini";
import { windowKeys } from "#shared/db/debounce-keys.ts";
import { DELIVERY_SHARDS } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredWindow } from "#shared/webhooks/debounce-window.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";

/** Without its text, which the table need not send. */
const Joined = z.object({ type: z.literal("windowEvent"), deliveryId: z.string() });
const fields = [...new Set([...Object.keys(Joined.shape), ...Object.keys(StoredWindow.shape)])];

export async function windowFaults(
  table: Table,
  companyId: number,
  webhookId: number,
  deliveries: ReadonlyMap<string, StoredDelivery>,
): Promise<string[]> {
  const windows = [...deliveries.values()].filter(
    ({ body, sharedData, state }) => body === undefined && sharedData === undefined && state !== "cancelled",
  );
  if (windows.length === 0) return [];
  const { joined, open } = await readWindows(table, companyId, webhookId);
  return windows.flatMap(({ id, state, closed }) => {
    const wanted = closed?.eventCount ?? open.get(id);
    const found = joined.get(id) ?? 0;
    if (wanted === undefined) return [`${id} (${state}): has neither a body nor a window`];
    return wanted === found ? [] : [`${id} (${state}): has ${found} events, its window ${wanted}`];
  });
}

/** By delivery: how many events have joined it, and of those that are open how many that window counts. */
async function readWindows(table: Table, companyId: number, webhookId: number) {
  const joined = new Map<string, number>();
  const open = new Map<string, number>();
  const shards = Array.from({ length: DELIVERY_SHARDS }, async (_, shard) => {
    for await (const item of table.query({ ...windowKeys.shard(companyId, webhookId, shard), fields })) {
      if (item.type === "windowEvent") {
        const { deliveryId } = Joined.parse(item);
        joined.set(deliveryId, (joined.get(deliveryId) ?? 0) + 1);
      } else if (item.type === "window") {
        const { deliveryId, eventCount } = StoredWindow.parse(item);
        open.set(deliveryId, eventCount);
      }
    }
  });
  await Promise.all(shards);
  return { joined, open };
}
