/**
 * The compaction lock stops merges while a rebuild is about to replace the sorted runs of an index. It is a lease in the head row of the
 * index, so it expires if the rebuild is killed.
 */
import { HEAD_TYPE, type Head, isUnmoved, readHead } from "#shared/company-index/manifest.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Duration of the lease, in milliseconds. The rebuild renews it until it ends. */
export const COMPACTION_LOCK_MS = 60_000;

/**
 * Takes the lock and returns the changed head row, or undefined if another process changed the row first. Taking the lock increments the
 * row's version, so that a merge in progress fails.
 */
export async function takeCompactionLock(
  { table, clock }: IndexContext,
  companyId: number,
  from: Head,
  rebuildId: string,
): Promise<Head | undefined> {
  const taken = { version: from.version + 1, rebuildId, mergesRestUntil: clock.now() + COMPACTION_LOCK_MS };
  const change = { set: { type: HEAD_TYPE, ...taken } };
  try {
    await table.write({ update: keys.indexHead(companyId), change, when: isUnmoved(from) });
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    // If the reply to a first attempt was lost, the lock is taken all the same. The row then has this rebuild's id, even if another process
    // has changed it since.
    if (readHead(error.failed[0]?.item).rebuildId !== rebuildId) return undefined;
  }
  return { ...from, ...taken };
}

/** Throws ConditionFailed if another rebuild has taken the lock. */
export async function renewCompactionLock(
  { table, clock }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const set = { mergesRestUntil: clock.now() + COMPACTION_LOCK_MS };
  await table.write({ update: keys.indexHead(companyId), change: { set }, when: equals("rebuildId", rebuildId) });
}

/** Releases the lock. Ignores failures, because the lease expires anyway. */
export async function releaseCompactionLock(
  { table }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const change = { remove: ["rebuildId", "mergesRestUntil"] };
  const ended = table.write({ update: keys.indexHead(companyId), change, when: equals("rebuildId", rebuildId) });
  await ended.catch(() => undefined);
}
