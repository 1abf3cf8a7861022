/** Reads and writes the tags of a company. No two of them have the same value, ignoring case. */
import { folded } from "#shared/caseless.ts";
import { iso } from "#shared/clock.ts";
import type { SharedChange } from "#shared/company-index/change-log.ts";
import { type ApiContext, commitTo } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { carryOut, type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { creationOf, loadDictionary, namesChange, namesChangeAfter } from "#shared/reference/dictionary.ts";
import { newValuedRow, releaseValue, valuedRowChange } from "#shared/reference/display-value.ts";
import type { NewTag, TagPatch } from "#shared/reference/input.ts";
import { DEFAULT_COLOR, StoredTag } from "#shared/reference/schema.ts";

export async function listTags({ table }: ApiContext, companyId: number): Promise<StoredTag[]> {
  const { tags } = await loadDictionary(table, companyId);
  return [...tags.values()].sort((a, b) => a.value.localeCompare(b.value, "en") || a.id - b.id);
}

export async function getTag({ table }: ApiContext, companyId: number, id: number): Promise<StoredTag> {
  const item = await table.get(keys.tag(companyId, id));
  if (item === undefined) throw notFound("tag");
  return StoredTag.parse(item);
}

export async function createTag(context: ApiContext, companyId: number, input: NewTag): Promise<Plan<StoredTag>> {
  const [id, dictionary] = await Promise.all([context.ids.next(), loadDictionary(context.table, companyId)]);
  if (dictionary.tags.size >= limits.tagsPerCompany) throw tooManyTags();
  const now = iso(context.clock.now());
  const { value, color = DEFAULT_COLOR } = input;
  const tag: StoredTag = { type: "tag", id, value, color, version: 1, createdAt: now, updatedAt: now };
  const names = namesChangeAfter(dictionary, companyId, creationOf(tag));
  return { writes: [...names, ...newTagWrites(companyId, tag)], answer: tag };
}

const tooManyTags = (): ApiError =>
  new ApiError("conflict", `A company may have at most ${limits.tagsPerCompany} tags.`);

export const newTagWrites = (companyId: number, tag: StoredTag): Write[] =>
  newValuedRow(companyId, "TAG", { ...keys.tag(companyId, tag.id), ...tag });

/** Writes nothing if all values are the same as before. */
export async function updateTag(
  context: ApiContext,
  companyId: number,
  id: number,
  patch: TagPatch,
): Promise<Plan<StoredTag>> {
  const current = await getTag(context, companyId, id);
  const { value = current.value, color = current.color } = patch;
  if (value === current.value && color === current.color) return unchanged(current);
  return valuedRowChange(companyId, "TAG", current, { ...current, value, color, updatedAt: iso(context.clock.now()) });
}

/** Deletes a tag. Its value may then be used again. Rows of prospects keep the tag's id, but the API no longer shows it. */
export async function deleteTag(context: ApiContext, companyId: number, id: number): Promise<Plan<{ id: number }>> {
  const tag = await getTag(context, companyId, id);
  const writes: Write[] = [
    { remove: keys.tag(companyId, id), when: equals("version", tag.version) },
    releaseValue(companyId, "TAG", tag),
    ...namesChange(companyId, deletionOf(tag)),
  ];
  return { writes, answer: { id } };
}

const deletionOf = ({ id, version }: StoredTag): SharedChange => ({
  kind: "tag",
  id,
  version: version + 1,
  isDeleted: true,
  isShownElsewhere: true,
});

/** A transaction has at most 100 writes: three for each tag, and two for the version of the dictionary. */
const TAGS_AT_ONCE = 30;

/**
 * Creates missing tags of an import, and returns ids by case-folded value, also of tags that another request has created meanwhile. Throws
 * `conflict` if the company would have too many tags.
 */
export async function ensureTags(
  context: ApiContext,
  companyId: number,
  values: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>();
  for (let done = 0; done < values.length; done += TAGS_AT_ONCE) {
    const step = values.slice(done, done + TAGS_AT_ONCE);
    const { answer: made } = await carryOut(() => makeMissing(context, companyId, step), commitTo(context.table));
    for (const { id, value } of made) ids.set(folded(value), id);
  }
  return ids;
}

async function makeMissing(
  context: ApiContext,
  companyId: number,
  values: readonly string[],
): Promise<Plan<StoredTag[]>> {
  const dictionary = await loadDictionary(context.table, companyId);
  const { tags } = dictionary;
  const known = new Map([...tags.values()].map((tag) => [folded(tag.value), tag]));
  const now = iso(context.clock.now());
  const missing = values.filter((value) => !known.has(folded(value)));
  if (missing.length > 0 && tags.size + missing.length > limits.tagsPerCompany) throw tooManyTags();
  const made = await Promise.all(
    missing.map(async (value): Promise<StoredTag> => {
      const id = await context.ids.next();
      return { type: "tag", id, value, color: DEFAULT_COLOR, version: 1, createdAt: now, updatedAt: now };
    }),
  );
  const answer = values.flatMap((value) => known.get(folded(value)) ?? []).concat(made);
  if (made.length === 0) return unchanged(answer);
  const names = namesChangeAfter(dictionary, companyId, ...made.map((tag) => creationOf(tag)));
  return { writes: [...names, ...made.flatMap((tag) => newTagWrites(companyId, tag))], answer };
}
