/** Makes the tags that an import names and the company does not have. */

import { folded } from "#shared/caseless.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { loadDictionary, namesChange } from "#shared/reference/dictionary.ts";
import { DEFAULT_COLOR } from "#shared/reference/status-schema.ts";
import type { StoredTag } from "#shared/reference/tag-schema.ts";
import { newTagWrites } from "#shared/reference/tags.ts";

/** Two writes each, and those that tell of changed names: a transaction takes 100. */
const TAGS_AT_ONCE = 45;

/** Ids by folded value. What somebody else makes meanwhile is taken as it is. */
export async function ensureTags(
  context: ApiContext,
  companyId: number,
  values: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>();
  for (let done = 0; done < values.length; done += TAGS_AT_ONCE) {
    const step = values.slice(done, done + TAGS_AT_ONCE);
    const made = await optimistic(() => makeMissing(context, companyId, step));
    for (const { id, value } of made) ids.set(folded(value), id);
  }
  return ids;
}

async function makeMissing(context: ApiContext, companyId: number, values: readonly string[]): Promise<StoredTag[]> {
  const { tags } = await loadDictionary(context.table, companyId);
  const known = new Map([...tags.values()].map((tag) => [folded(tag.value), tag]));
  const now = iso(context.clock.now());
  const missing = values.filter((value) => !known.has(folded(value)));
  const made = await Promise.all(
    missing.map(async (value): Promise<StoredTag> => {
      const id = await context.ids.next();
      return { type: "tag", id, value, color: DEFAULT_COLOR, version: 1, createdAt: now, updatedAt: now };
    }),
  );
  if (made.length > 0) {
    await context.table.transact([...made.flatMap((tag) => newTagWrites(companyId, tag)), ...namesChange(companyId)]);
  }
  return values.flatMap((value) => known.get(folded(value)) ?? []).concat(made);
}
