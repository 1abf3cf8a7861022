/** Counts overdue deliveries with the due index, and logs once a minute how late they are. */
import * as z from "zod/mini";
import { allEnded, mapConcurrently } from "#shared/all-ended.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { fanOutKeys, limiterKeys } from "#shared/db/webhook-keys.ts";
import { log } from "#shared/log.ts";

export const DueEntry = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });
export type DueEntry = z.infer<typeof DueEntry>;

export const companyOf = ({ pk }: Pick<DueEntry, "pk">): number => Number(/^C#(\d+)#/.exec(pk)?.[1]);

/** Other entries of the due index belong to webhooks, limiters, replays and fan-outs. */
export const isDelivery = ({ sk }: Pick<DueEntry, "sk">): boolean => sk.startsWith("D#");

interface Waiting {
  count: number;
  /** The earliest due time in milliseconds since 1970. It is Infinity if nothing waits. */
  oldestMs: number;
  readonly byCompany: Map<number, number>;
}

const nothing = (): Waiting => ({ count: 0, oldestMs: Number.POSITIVE_INFINITY, byCompany: new Map() });

function addTo(waiting: Waiting, { pk, dueAt }: DueEntry): void {
  const companyId = companyOf({ pk });
  waiting.count++;
  waiting.oldestMs = Math.min(waiting.oldestMs, Date.parse(dueAt));
  raise(waiting.byCompany, companyId, 1);
}

function raise(counts: Map<number, number>, companyId: number, by: number): void {
  counts.set(companyId, (counts.get(companyId) ?? 0) + by);
}

/** Maximum number of overdue entries that are kept in memory. If there are more, `Overdue.again` reads all of them a second time. */
const CACHED_ENTRIES = 2_000;

/** The overdue entries outside of the paused and throttled backlogs. */
export interface Overdue {
  readonly deliveries: Waiting;
  readonly fanOuts: number;
  /** Webhooks with a throttled backlog from which deliveries should be sent now. */
  readonly throttled: readonly { readonly companyId: number; readonly webhookId: number }[];
  /** Returns the entries of a partition again: from memory if all partitions have at most `CACHED_ENTRIES`, otherwise from the index. */
  readonly again: (shard: string) => AsyncIterable<Item> | Iterable<Item>;
}

export async function countOverdue(table: Table, upTo: string): Promise<Overdue> {
  const read = (pk: string) => table.query({ pk, index: "due", upTo });
  const deliveries = nothing();
  let fanOuts = 0;
  const throttled: { companyId: number; webhookId: number }[] = [];
  let cache: Map<string, Item[]> | undefined = new Map(keys.dueShards().map((shard) => [shard, []]));
  let cachedCount = 0;
  const counted = keys.dueShards().map(async (shard) => {
    for await (const item of read(shard)) {
      if (++cachedCount > CACHED_ENTRIES) cache = undefined;
      cache?.get(shard)?.push(item);
      const entry = DueEntry.parse(item);
      const limiter = limiterKeys.limiterAt(entry);
      if (limiter !== undefined) throttled.push(limiter);
      if (fanOutKeys.laneAt(entry) !== undefined) fanOuts++;
      if (isDelivery(entry)) addTo(deliveries, entry);
    }
  });
  await allEnded(counted);
  return { deliveries, fanOuts, throttled, again: (shard) => cache?.get(shard) ?? read(shard) };
}

/** Maximum number of deliveries counted in each partition of a backlog: one page of the index. */
const COUNTED = 5_000;
const PARALLEL = 8;

/** Logs a line for the whole service and one for each waiting company. After `endMs`, counts no further backlogs. */
export async function reportLag(
  context: EventContext,
  { deliveries: due, fanOuts, throttled }: Overdue,
  endMs: number,
): Promise<void> {
  const now = context.clock.now();
  const inBacklogs = nothing();
  let notCounted = 0;
  const backlogs = await Array.fromAsync(backlogsOf(context, throttled));
  await mapConcurrently(backlogs, PARALLEL, async (shards) => {
    if (context.clock.now() > endMs) notCounted++;
    else for (const shard of shards) await countBacklog(context, shard, now, inBacklogs);
  });
  log.info("deliveries waiting", {
    waiting: due.count + inBacklogs.count,
    inBacklogs: inBacklogs.count,
    overdueSeconds: secondsSince(due.oldestMs, now),
    oldestDueSeconds: secondsSince(Math.min(due.oldestMs, inBacklogs.oldestMs), now),
    fanOuts,
    ...(notCounted > 0 && { webhooksNotCounted: notCounted }),
  });
  const byCompany = new Map(due.byCompany);
  for (const [companyId, count] of inBacklogs.byCompany) raise(byCompany, companyId, count);
  for (const [companyId, waiting] of byCompany) log.info("company waiting", { companyId, waiting });
}

const secondsSince = (oldestMs: number, now: number): number => Math.max(0, Math.floor((now - oldestMs) / 1_000));

/** Yields the partitions of the backlog of each throttled webhook, and then of each paused webhook. */
async function* backlogsOf(
  { table }: EventContext,
  throttled: Overdue["throttled"],
): AsyncGenerator<readonly string[], void, undefined> {
  for (const { companyId, webhookId } of throttled) yield keys.throttledBacklogShards(companyId, webhookId);
  for await (const item of table.query({ pk: keys.pausedWebhooksShard(), index: "due" })) {
    const webhook = keys.webhookAt(DueEntry.parse(item));
    if (webhook !== undefined) yield keys.pausedBacklogShards(webhook.companyId, webhook.webhookId);
  }
}

async function countBacklog({ table }: EventContext, pk: string, now: number, into: Waiting): Promise<void> {
  let counted = 0;
  for await (const item of table.query({ pk, index: "due", pageItems: COUNTED })) {
    const entry = DueEntry.parse(item);
    if (Date.parse(entry.dueAt) > now) break;
    addTo(into, entry);
    if (++counted === COUNTED) break;
  }
}
