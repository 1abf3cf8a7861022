/** The compaction lock prevents merges while a rebuild prepares to replace parts. It is a lease, so it expires even if the rebuild stops. */
import { logAfter } from "#shared/company-index/change-log.ts";
import { HEAD_TYPE, type Head, isUnmoved, readHead } from "#shared/company-index/manifest.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Milliseconds. The rebuild renews the lease until it ends. */
export const COMPACTION_LOCK_MS = 60_000;

/** Returns undefined if the head row has changed. The higher version of the row makes a merge that is already running fail. */
export async function takeCompactionLock(
  { table, clock }: IndexContext,
  companyId: number,
  from: Head,
  rebuildId: string,
): Promise<Head | undefined> {
  const taken = {
    version: from.version + 1,
    rebuildId,
    lockedUntil: clock.now() + COMPACTION_LOCK_MS,
    ...logAfter(from),
  };
  const change = { set: { type: HEAD_TYPE, ...taken } };
  try {
    await table.write({ update: keys.indexHead(companyId), change, when: isUnmoved(from) });
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    // If the row contains this rebuild's id, an earlier attempt has acquired the lock and its response was lost.
    if (readHead(error.failed[0]?.item).rebuildId !== rebuildId) return undefined;
  }
  return { ...from, ...taken };
}

/** Throws ConditionFailed if another rebuild has acquired the lock. */
export async function renewCompactionLock(
  { table, clock }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const set = { lockedUntil: clock.now() + COMPACTION_LOCK_MS };
  await table.write({ update: keys.indexHead(companyId), change: { set }, when: equals("rebuildId", rebuildId) });
}

/** An error is ignored, because the lease expires anyway. */
export async function releaseCompactionLock(
  { table }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const change = { remove: ["rebuildId", "lockedUntil"] };
  const ended = table.write({ update: keys.indexHead(companyId), change, when: equals("rebuildId", rebuildId) });
  await ended.catch(() => undefined);
}
