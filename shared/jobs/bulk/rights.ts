/**
 * The rights with which a bulk job writes: the current rights of the user who began it. A request that changes these rights waits until the
 * running job has read the new ones. After its response, no job writes with the old rights.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { iso } from "#shared/clock.ts";
import type { ReadContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import { readQueue } from "#shared/jobs/bulk/queue.ts";
import { storedJob } from "#shared/jobs/bulk/read.ts";
import { getUser } from "#shared/reference/users.ts";

/** How often a request looks at a running job that it waits for, and how many milliseconds it waits before each look. */
export interface Patience {
  readonly tries: number;
  readonly ms: number;
}
const PATIENCE: Patience = { tries: 75, ms: 200 };

/**
 * Waits until no job of the user can write with older rights than those in the user's row, usually less than a second. Throws `unavailable`
 * if the job's function was interrupted: its last writes may still reach the table until its lease expires.
 */
export async function untilJobsHaveRights(
  context: ReadContext,
  companyId: number,
  userId: number,
  { tries, ms }: Patience = PATIENCE,
): Promise<void> {
  const { table, clock } = context;
  const { version } = await getUser(context, companyId, userId);
  // A company's jobs run one after the other, so only the job that runs now can write with older rights.
  const { running } = await readQueue(table, companyId);
  if (running === null) return;
  for (let left = tries; ; left--) {
    const job = await storedJob(table, companyId, running);
    if (job === undefined) return;
    const { createdBy, state, runsUntil, authorVersion = 0 } = job;
    const writes = state === "running" && runsUntil !== undefined && runsUntil > iso(clock.now());
    if (createdBy !== userId || !writes || authorVersion >= version) return;
    if (left === 0) {
      const detail = `The user is changed, but the job ${running} may still write with the user's old rights for two minutes. Repeat the request.`;
      throw new ApiError("unavailable", detail, { showsDetail: true });
    }
    await sleep(ms);
  }
}
