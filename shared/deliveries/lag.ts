/** How late deliveries are, told once a minute for metrics: those that are due, and those that a paused webhook or a gate keeps. */

import * as z from "zod/mini";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { keys } from "#shared/db/keys.ts";
import type { Item } from "#shared/db/table.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { log } from "#shared/log.ts";

/** Deliveries of one webhook that are counted: of more, the count says so many. A page of the index. */
const COUNTED = 5_000;

const Entry = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });
type Entry = z.infer<typeof Entry>;

/** `due`: what the sweeper has found in the due index. Logs one line for all and one per company that waits. */
export async function tellLag(world: EventWorld, due: readonly Item[]): Promise<void> {
  const now = world.clock.now();
  const entries = due.map((item) => Entry.parse(item)).filter(({ dueAt }) => Date.parse(dueAt) <= now);
  const gates = entries.flatMap((entry) => gateKeys.gateAt(entry) ?? []);
  const paused = await pausedWebhooks(world);
  const kept = [
    ...gates.map(({ companyId, id }) => keys.gatedShard(companyId, id)),
    ...paused.map(({ companyId, id }) => keys.heldShard(companyId, id)),
  ];
  const own = entries.filter(({ sk }) => sk.startsWith("D#"));
  const held = (await Promise.all(kept.map((shard) => dueIn(world, shard, now)))).flat();
  log.info("deliveries waiting", {
    waiting: own.length + held.length,
    held: held.length,
    overdueSeconds: oldestSeconds(own, now),
    oldestDueSeconds: oldestSeconds([...own, ...held], now),
  });
  const companies = Map.groupBy([...own, ...held], ({ pk }) => Number(/^C#(\d+)#/.exec(pk)?.[1]));
  for (const [companyId, waiting] of companies) log.info("company waiting", { companyId, waiting: waiting.length });
}

const oldestSeconds = (entries: readonly Entry[], now: number): number =>
  Math.max(0, ...entries.map(({ dueAt }) => Math.floor((now - Date.parse(dueAt)) / 1_000)));

async function pausedWebhooks({ table }: EventWorld): Promise<{ companyId: number; id: number }[]> {
  const found: { companyId: number; id: number }[] = [];
  for await (const item of table.query({ pk: keys.pausedShard(), index: "due" })) {
    const webhook = keys.webhookAt(Entry.parse(item));
    if (webhook !== undefined) found.push(webhook);
  }
  return found;
}

/** The oldest of what is due. */
async function dueIn({ table }: EventWorld, pk: string, now: number): Promise<Entry[]> {
  const found: Entry[] = [];
  for await (const item of table.query({ pk, index: "due", pageItems: COUNTED })) {
    const entry = Entry.parse(item);
    if (Date.parse(entry.dueAt) > now || found.push(entry) === COUNTED) break;
  }
  return found;
}
