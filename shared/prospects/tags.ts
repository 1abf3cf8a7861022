/** Gives a prospect its tags. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { badReference } from "#shared/errors.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import { readVisibleProspect } from "#shared/prospects/read.ts";
import { replaceProspect } from "#shared/prospects/row-writes.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { upcomingOf } from "#shared/prospects/upcoming.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";
import type { TagChoice } from "#shared/reference/tag-schema.ts";

/** Replaces all tags of the prospect. The tags that it shows already, in their order, write nothing. */
export function setTags(context: ApiContext, caller: Caller, id: number, { tagIds }: TagChoice): Promise<Prospect> {
  const { companyId, userId } = caller;
  return optimistic(async () => {
    const [current, dictionary] = await Promise.all([
      readVisibleProspect(context, caller, id),
      loadDictionary(context.table, companyId),
    ]);
    requireTags(dictionary, tagIds);
    const wanted = [...new Set(tagIds)];
    const now = context.clock.now();
    const upcoming = await upcomingOf(context.table, current, now);
    if (isShown(current, wanted, dictionary)) return presentProspect(current, upcoming, dictionary);
    const moved = { updatedAt: iso(now), updatedBy: userId, version: current.version + 1 };
    const next: StoredProspect = { ...current, tagIds: wanted, ...moved };
    await context.table.transact(replaceProspect(current, next));
    return presentProspect(next, upcoming, dictionary);
  });
}

/** Points at the first place of each unknown one. */
function requireTags({ tags }: Dictionary, tagIds: readonly number[]): void {
  const unknown = [...new Set(tagIds)].flatMap((id) => (tags.has(id) ? [] : [`tagIds/${tagIds.indexOf(id)}`]));
  if (unknown.length > 0) throw badReference(...unknown);
}

/** Tags that were deleted since are in the row and not shown. */
function isShown({ tagIds }: StoredProspect, wanted: readonly number[], { tags }: Dictionary): boolean {
  return tagIds.filter((id) => tags.has(id)).join() === wanted.join();
}
