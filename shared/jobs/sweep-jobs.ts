/** Finds imports and exports that nobody works on, and sends a message for each: what there is to do, its row says. */

import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import { equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** A message that was sent for it may still be on its way. */
const GRACE_MS = 15_000;
/** One that was sent for is left alone this long. */
const AGAIN_MS = 5 * 60_000;

const Entry = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });

/** @returns for how many a message was sent. */
export async function sweepJobs({ table, clock, jobs }: Pick<AppContext, "table" | "clock" | "jobs">): Promise<number> {
  const now = clock.now();
  let sent = 0;
  for await (const item of table.query({ pk: keys.jobShard, index: "due", upTo: iso(now - GRACE_MS) })) {
    const { pk, sk, dueAt } = Entry.parse(item);
    const job = keys.jobAt({ pk, sk });
    if (job === undefined) continue;
    // Seen by one sweep only; and whoever has begun meanwhile has said when to look again.
    const again = { set: { dueAt: iso(now + AGAIN_MS) } };
    try {
      await table.write({ update: { pk, sk }, change: again, when: equals("dueAt", dueAt) });
    } catch (error) {
      if (error instanceof ConditionFailed) continue;
      throw error;
    }
    await jobs.send(job);
    sent++;
  }
  return sent;
}
