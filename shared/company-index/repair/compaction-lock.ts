/**
 * The compaction lock prevents merges while a rebuild of a company's search index prepares to replace the index's runs. It is a lease in
 * the head row of the index, so it expires even if the rebuild's process stops.
 */
import { logAfter } from "#shared/company-index/change-log.ts";
import { HEAD_TYPE, type Head, isUnmoved, readHead } from "#shared/company-index/manifest.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Duration of the lease in milliseconds. The rebuild renews the lease until it ends. */
export const COMPACTION_LOCK_MS = 60_000;

/**
 * Acquires the compaction lock, which prevents merges, and returns the changed head row. Returns undefined if another process has changed
 * the row first. Acquiring the lock increments the row's version, so that a merge that is already running fails at its condition.
 */
export async function takeCompactionLock(
  { table, clock }: IndexContext,
  companyId: number,
  from: Head,
  rebuildId: string,
): Promise<Head | undefined> {
  const taken = {
    version: from.version + 1,
    rebuildId,
    mergesRestUntil: clock.now() + COMPACTION_LOCK_MS,
    ...logAfter(from),
  };
  const change = { set: { type: HEAD_TYPE, ...taken } };
  try {
    await table.write({ update: keys.indexHead(companyId), change, when: isUnmoved(from) });
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    // If the row contains this rebuild's id, an earlier attempt has acquired the lock, and only its response was lost.
    if (readHead(error.failed[0]?.item).rebuildId !== rebuildId) return undefined;
  }
  return { ...from, ...taken };
}

/** Extends the lease. Throws ConditionFailed if another rebuild has acquired the lock. */
export async function renewCompactionLock(
  { table, clock }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const set = { mergesRestUntil: clock.now() + COMPACTION_LOCK_MS };
  await table.write({ update: keys.indexHead(companyId), change: { set }, when: equals("rebuildId", rebuildId) });
}

/** Releases the lock. An error is ignored, because the lease expires anyway. */
export async function releaseCompactionLock(
  { table }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const change = { remove: ["rebuildId", "mergesRestUntil"] };
  const ended = table.write({ update: keys.indexHead(companyId), change, when: equals("rebuildId", rebuildId) });
  await ended.catch(() => undefined);
}
