/** How late deliveries are, told once a minute for metrics: those that are due, and those that a paused webhook or a gate keeps. */

import { allEnded } from "#shared/all-ended.ts";
import type { EventContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { log } from "#shared/log.ts";
import {
  addTo,
  companyOf,
  DueEntry,
  nothing,
  type Overdue,
  type Waiting,
} from "#shared/webhooks/reconcile/due-entries.ts";

/** Deliveries of one webhook that are counted: of more, the count says so many. A page of the index. */
const COUNTED = 5_000;
/** Webhooks whose deliveries are counted at the same time. */
const PARALLEL = 8;

/**
 * Logs one line for all and one per company that waits. Past `endMs` it counts no further webhook, and says in the line of all that
 * some are left out.
 */
export async function tellLag(
  context: EventContext,
  { deliveries: own, fanOuts, gates }: Overdue,
  endMs: number,
): Promise<void> {
  const now = context.clock.now();
  const held = nothing();
  let left = 0;
  const shards = keptShards(context, gates);
  async function work(): Promise<void> {
    for (;;) {
      const { value: shard, done } = await shards.next();
      if (done === true) return;
      if (context.clock.now() > endMs) left++;
      else await countDue(context, shard, now, held);
    }
  }
  await allEnded(Array.from({ length: PARALLEL }, work));
  log.info("deliveries waiting", {
    waiting: own.count + held.count,
    held: held.count,
    overdueSeconds: secondsSince(own.oldestMs, now),
    oldestDueSeconds: secondsSince(Math.min(own.oldestMs, held.oldestMs), now),
    fanOuts,
    ...(left > 0 && { webhooksNotCounted: left }),
  });
  for (const companyId of new Set([...own.byCompany.keys(), ...held.byCompany.keys()])) {
    const waiting = (own.byCompany.get(companyId) ?? 0) + (held.byCompany.get(companyId) ?? 0);
    log.info("company waiting", { companyId, waiting });
  }
}

/** Nothing waits: no time at all. */
const secondsSince = (oldestMs: number, now: number): number => Math.max(0, Math.floor((now - oldestMs) / 1_000));

/** Where gates and paused webhooks keep their deliveries, one partition of the index each. */
async function* keptShards({ table }: EventContext, gates: Overdue["gates"]): AsyncGenerator<string, void, undefined> {
  for (const { companyId, id } of gates) yield keys.gatedShard(companyId, id);
  for await (const item of table.query({ pk: keys.pausedShard(), index: "due" })) {
    const webhook = keys.webhookAt(DueEntry.parse(item));
    if (webhook !== undefined) yield keys.heldShard(webhook.companyId, webhook.id);
  }
}

/** The oldest of what is due. */
async function countDue({ table }: EventContext, pk: string, now: number, into: Waiting): Promise<void> {
  let counted = 0;
  for await (const item of table.query({ pk, index: "due", pageItems: COUNTED })) {
    const entry = DueEntry.parse(item);
    if (Date.parse(entry.dueAt) > now) break;
    addTo(into, companyOf(entry), entry.dueAt);
    if (++counted === COUNTED) break;
  }
}
