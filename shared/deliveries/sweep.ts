/** Finds deliveries that are due and whose message is gone, and queues them again; releases, replays and looks at gates alike. */

import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { all, any, below, equals, missing } from "#shared/db/expression.ts";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { keys } from "#shared/db/keys.ts";
import { replayKeys } from "#shared/db/replay-keys.ts";
import type { Item } from "#shared/db/table.ts";
import { tellLag } from "#shared/deliveries/lag.ts";
import { releaseMessage } from "#shared/deliveries/release.ts";
import { replayMessage } from "#shared/deliveries/replay.ts";
import { StoredDelivery } from "#shared/deliveries/schema.ts";
import { enqueue } from "#shared/deliveries/settle.ts";
import { sendLook } from "#shared/deliveries/waiting.ts";
import type { EventWorld } from "#shared/events/world.ts";

/** `messages-lost`: the queue was purged or began empty, so everything that waits is queued again, whenever it is due. */
export const SweepInput = z.object({ assume: z.enum(["messages-kept", "messages-lost"]) });
export type SweepInput = z.infer<typeof SweepInput>;

/** A delivery due for less than this is taken to have its message still. */
const GRACE_MS = 30_000;
/** A delivery that was queued again is left alone this long, so that a backlog is not doubled every minute. */
const SWEEP_AGAIN_MS = 10 * 60_000;
const PARALLEL = 16;

/** @returns how many deliveries were queued again. */
export async function sweep(world: EventWorld, { assume }: SweepInput): Promise<number> {
  const found: Item[] = [];
  const overdue = assume === "messages-lost" ? {} : { upTo: iso(world.clock.now() - GRACE_MS) };
  await Promise.all(
    keys.dueShards().map(async (pk) => {
      for await (const item of world.table.query({ pk, index: "due", ...overdue })) found.push(item);
    }),
  );
  await tellLag(world, found);
  let queued = 0;
  const failed: unknown[] = [];
  async function work(): Promise<void> {
    for (let item = found.pop(); item !== undefined; item = found.pop()) {
      try {
        if (await queueAgain(world, item, assume)) queued++;
      } catch (error) {
        failed.push(error);
      }
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, work));
  // A row that cannot be read keeps none of the others, but the run counts as failed.
  if (failed.length > 0) throw failed[0];
  return queued;
}

const IndexEntry = z.object({ pk: z.string(), sk: z.string() });

/** The index lags behind the table, so the row itself decides. */
async function queueAgain(world: EventWorld, entry: Item, assume: SweepInput["assume"]): Promise<boolean> {
  const { pk, sk } = IndexEntry.parse(entry);
  const webhook = keys.webhookAt({ pk, sk });
  // One message too many changes nothing: the webhook's row says whether there is something to release.
  if (webhook !== undefined) return releaseAgain(world, webhook);
  const replayed = replayKeys.replayAt({ pk, sk });
  if (replayed !== undefined) return replayAgain(world, replayed);
  const now = world.clock.now();
  const gate = gateKeys.gateAt({ pk, sk });
  if (gate !== undefined) return sendLook(world, gate.companyId, gate.id, now).then(() => true);
  const fresh = any(missing("sweptAt"), below("sweptAt", iso(now - SWEEP_AGAIN_MS)));
  const waiting = equals("state", "waiting");
  try {
    const item = await world.table.write({
      update: { pk, sk },
      change: { set: { sweptAt: iso(now) } },
      when: assume === "messages-lost" ? waiting : all(waiting, fresh),
    });
    await enqueue(world, [StoredDelivery.parse(item)]);
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed) return false;
    throw error;
  }
}

/** Likewise: the replay's row says how far it is. */
async function replayAgain(
  { queue }: EventWorld,
  { companyId, webhookId }: { companyId: number; webhookId: number },
): Promise<true> {
  await queue.send([{ message: replayMessage(companyId, webhookId), delaySeconds: 0 }]);
  return true;
}

async function releaseAgain(
  { queue }: EventWorld,
  { companyId, id }: { companyId: number; id: number },
): Promise<true> {
  await queue.send([{ message: releaseMessage(companyId, id), delaySeconds: 0 }]);
  return true;
}
