/**
 * The rest of merges: a lease in the head, held by a rebuild, so that the runs which it is to replace are not mixed with newer
 * ones. It expires by itself when the rebuild is killed.
 */
import { HEAD_TYPE, type Head, isUnmoved, readHead } from "#shared/company-index/manifest.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";
import { equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** How long merges rest if nobody asks again. */
export const COMPACTION_LOCK_MS = 60_000;

/** Gives the head as it is then; undefined when somebody moved it first. A merge that is under way fails: the version moves. */
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
    // The reply may have been lost, and others have moved the head since.
    if (readHead(error.failed[0]?.item).rebuildId !== rebuildId) return undefined;
  }
  return { ...from, ...taken };
}

/** Throws ConditionFailed when another rebuild has taken over. */
export async function renewCompactionLock(
  { table, clock }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const set = { mergesRestUntil: clock.now() + COMPACTION_LOCK_MS };
  await table.write({ update: keys.indexHead(companyId), change: { set }, when: equals("rebuildId", rebuildId) });
}

/** Where it fails, or another rebuild has taken over, there is nothing to be done: a rest ends by itself. */
export async function releaseCompactionLock(
  { table }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const change = { remove: ["rebuildId", "mergesRestUntil"] };
  const ended = table.write({ update: keys.indexHead(companyId), change, when: equals("rebuildId", rebuildId) });
  await ended.catch(() => undefined);
}
