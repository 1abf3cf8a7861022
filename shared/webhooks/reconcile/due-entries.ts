/** Pages through the due index and counts what it holds by company: sums and no pages are kept, however much waits. */
import * as z from "zod/mini";
import { allEnded } from "#shared/all-ended.ts";
import { fanOutKeys } from "#shared/db/fan-out-keys.ts";
import type { Item } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import type { Table } from "#shared/db/table.ts";

export const DueEntry = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });
export type DueEntry = z.infer<typeof DueEntry>;

/** What waits, as far as it was counted. */
export interface Waiting {
  count: number;
  /** The earliest due time; Infinity where nothing waits. */
  oldestMs: number;
  readonly byCompany: Map<number, number>;
}

export const nothing = (): Waiting => ({ count: 0, oldestMs: Number.POSITIVE_INFINITY, byCompany: new Map() });

export function addTo(waiting: Waiting, companyId: number, dueAt: string): void {
  waiting.count++;
  waiting.oldestMs = Math.min(waiting.oldestMs, Date.parse(dueAt));
  waiting.byCompany.set(companyId, (waiting.byCompany.get(companyId) ?? 0) + 1);
}

/** One of the index's partitions that hold what is due by itself, in the order of time. */
export const shards = (): string[] => keys.dueShards();

export const companyOf = ({ pk }: Pick<DueEntry, "pk">): number => Number(/^C#(\d+)#/.exec(pk)?.[1]);

/** The others are rows of webhooks, and of events with many deliveries. */
export const isDelivery = ({ sk }: Pick<DueEntry, "sk">): boolean => sk.startsWith("D#");

/** More than these are read a second time, where one reading is to follow the other. */
const KEPT_ENTRIES = 2_000;

/** What is overdue in all shards. */
export interface Overdue {
  readonly deliveries: Waiting;
  /** Events whose deliveries are still being made. */
  readonly fanOuts: number;
  /** Webhooks at whose gates deliveries wait. */
  readonly gates: readonly { readonly companyId: number; readonly id: number }[];
  /** Reads the entries of a shard once more, or has them still where they are few. */
  readonly again: (shard: string) => AsyncIterable<Item> | Iterable<Item>;
}

/** `upTo`: due at that time or earlier; everything without it. */
export async function countOverdue(table: Table, upTo: string | undefined): Promise<Overdue> {
  const read = (pk: string) => table.query({ pk, index: "due", ...(upTo !== undefined && { upTo }) });
  const deliveries = nothing();
  let fanOuts = 0;
  const gates: { companyId: number; id: number }[] = [];
  let kept: Map<string, Item[]> | undefined = new Map(shards().map((shard) => [shard, []]));
  let keptCount = 0;
  const counted = shards().map(async (shard) => {
    for await (const item of read(shard)) {
      if (++keptCount > KEPT_ENTRIES) kept = undefined;
      kept?.get(shard)?.push(item);
      const entry = DueEntry.parse(item);
      const gate = gateKeys.gateAt(entry);
      if (gate !== undefined) gates.push(gate);
      if (fanOutKeys.companyAt(entry) !== undefined) fanOuts++;
      if (isDelivery(entry)) addTo(deliveries, companyOf(entry), entry.dueAt);
    }
  });
  await allEnded(counted);
  return { deliveries, fanOuts, gates, again: (shard) => kept?.get(shard) ?? read(shard) };
}
