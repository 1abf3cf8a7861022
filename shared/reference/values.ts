/** Reads and writes the lead statuses and tags of a company. No two statuses, and no two tags, have the same value, ignoring case. */
import { folded } from "#shared/caseless.ts";
import { iso } from "#shared/clock.ts";
import { type ApiContext, commitTo } from "#shared/context.ts";
import { absent, equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { carryOut, type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, existing, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { type Patch, withPatch } from "#shared/patch.ts";
import {
  changeOf,
  creationOf,
  loadDictionary,
  namesChange,
  namesChangeAfter,
  nextVersion,
} from "#shared/reference/dictionary.ts";
import type { NewStatus, NewTag, StatusPatch, TagPatch } from "#shared/reference/input.ts";
import { DEFAULT_COLOR, StoredStatus, StoredTag } from "#shared/reference/schema.ts";

type ValuedRow = StoredStatus | StoredTag;

const keyOf = (companyId: number, { type, id }: ValuedRow): keys.Key =>
  type === "status" ? keys.status(companyId, id) : keys.tag(companyId, id);

/** The key of the row that reserves the value for one status or tag. */
const valueKey = (companyId: number, { type, value }: ValuedRow): keys.Key =>
  keys.uniqueValue(companyId, type === "status" ? "STATUS" : "TAG", folded(value));

const claimValue = (companyId: number, row: ValuedRow): Write => ({
  put: { ...valueKey(companyId, row), type: "uniqueValue", id: row.id },
  when: absent,
  orThrow: () => new ApiError("conflict", `Another ${row.type} already has this value.`),
});

const releaseValue = (companyId: number, row: ValuedRow): Write => ({ remove: valueKey(companyId, row) });

export const newValueWrites = (companyId: number, row: ValuedRow): Write[] => [
  { put: { ...keyOf(companyId, row), ...row }, when: absent },
  claimValue(companyId, row),
];

function valueChange<Row extends ValuedRow>(
  companyId: number,
  current: Row,
  patch: Patch<Row>,
  nowMs: number,
): Plan<Row> {
  const changed = withPatch(current, patch);
  if (JSON.stringify(changed) === JSON.stringify(current)) return unchanged(current);
  const next = nextVersion(current, { ...changed, updatedAt: iso(nowMs) });
  const isRenamed = folded(next.value) !== folded(current.value);
  const writes: Write[] = [
    { put: { ...keyOf(companyId, next), ...next }, when: equals("version", current.version) },
    ...(isRenamed ? [claimValue(companyId, next), releaseValue(companyId, current)] : []),
    ...namesChange(companyId, changeOf(current, next)),
  ];
  return { writes, answer: next };
}

export async function listStatuses({ table }: ApiContext, companyId: number): Promise<StoredStatus[]> {
  const { statuses } = await loadDictionary(table, companyId);
  return [...statuses.values()].sort((a, b) => a.sortOrder - b.sortOrder || a.id - b.id);
}

export async function getStatus({ table }: ApiContext, companyId: number, id: number): Promise<StoredStatus> {
  return StoredStatus.parse(existing(await table.get(keys.status(companyId, id)), "status"));
}

export async function createStatus(
  context: ApiContext,
  companyId: number,
  input: NewStatus,
): Promise<Plan<StoredStatus>> {
  const [id, dictionary] = await Promise.all([context.ids.next(), loadDictionary(context.table, companyId)]);
  if (dictionary.statuses.size >= limits.statusesPerCompany) {
    throw new ApiError(
      "conflict",
      `A company may have at most ${limits.statusesPerCompany} statuses, active or not. Rename one that is not active, and activate it again.`,
    );
  }
  const now = iso(context.clock.now());
  const last = Math.max(0, ...[...dictionary.statuses.values()].map(({ sortOrder }) => sortOrder));
  const { value, color = DEFAULT_COLOR, sortOrder = last + 1 } = input;
  const dates = { createdAt: now, updatedAt: now };
  const status: StoredStatus = { type: "status", id, value, color, sortOrder, isActive: true, version: 1, ...dates };
  const names = namesChangeAfter(dictionary, companyId, creationOf(status));
  return { writes: [...names, ...newValueWrites(companyId, status)], answer: status };
}

export async function updateStatus(
  context: ApiContext,
  companyId: number,
  id: number,
  patch: StatusPatch,
): Promise<Plan<StoredStatus>> {
  return valueChange(companyId, await getStatus(context, companyId, id), patch, context.clock.now());
}

/** Prospects that have an inactive status keep it, but no other prospect can get it. */
export async function deactivateStatus(
  context: ApiContext,
  companyId: number,
  id: number,
): Promise<Plan<StoredStatus>> {
  const current = await getStatus(context, companyId, id);
  if (!current.isActive) throw notFound("status");
  return valueChange(companyId, current, { isActive: false }, context.clock.now());
}

export async function listTags({ table }: ApiContext, companyId: number): Promise<StoredTag[]> {
  const { tags } = await loadDictionary(table, companyId);
  return [...tags.values()].sort((a, b) => a.value.localeCompare(b.value, "en") || a.id - b.id);
}

export async function getTag({ table }: ApiContext, companyId: number, id: number): Promise<StoredTag> {
  return StoredTag.parse(existing(await table.get(keys.tag(companyId, id)), "tag"));
}

const newTag = (id: number, { value, color = DEFAULT_COLOR }: NewTag, now: string): StoredTag => ({
  type: "tag",
  id,
  value,
  color,
  version: 1,
  createdAt: now,
  updatedAt: now,
});

export async function createTag(context: ApiContext, companyId: number, input: NewTag): Promise<Plan<StoredTag>> {
  const [id, dictionary] = await Promise.all([context.ids.next(), loadDictionary(context.table, companyId)]);
  if (dictionary.tags.size >= limits.tagsPerCompany) throw tooManyTags();
  const tag = newTag(id, input, iso(context.clock.now()));
  const names = namesChangeAfter(dictionary, companyId, creationOf(tag));
  return { writes: [...names, ...newValueWrites(companyId, tag)], answer: tag };
}

const tooManyTags = (): ApiError =>
  new ApiError("conflict", `A company may have at most ${limits.tagsPerCompany} tags.`);

export async function updateTag(
  context: ApiContext,
  companyId: number,
  id: number,
  patch: TagPatch,
): Promise<Plan<StoredTag>> {
  return valueChange(companyId, await getTag(context, companyId, id), patch, context.clock.now());
}

/** Deletes a tag. Rows of prospects keep the tag's id, but the API no longer shows the tag. */
export async function deleteTag(context: ApiContext, companyId: number, id: number): Promise<Plan<{ id: number }>> {
  const tag = await getTag(context, companyId, id);
  const deletion = { kind: "tag", id, version: tag.version + 1, isDeleted: true, isShownElsewhere: true } as const;
  const writes: Write[] = [
    { remove: keys.tag(companyId, id), when: equals("version", tag.version) },
    releaseValue(companyId, tag),
    ...namesChange(companyId, deletion),
  ];
  return { writes, answer: { id } };
}

/** A transaction has at most 100 writes: three for each tag, and two for the version of the dictionary. */
const TAGS_AT_ONCE = 30;

/** Creates missing tags. Returns the ids of all `values` by case-folded value. Throws `conflict` if the company would get too many. */
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
  const made = await Promise.all(missing.map(async (value) => newTag(await context.ids.next(), { value }, now)));
  const answer = values.flatMap((value) => known.get(folded(value)) ?? []).concat(made);
  if (made.length === 0) return unchanged(answer);
  const names = namesChangeAfter(dictionary, companyId, ...made.map((tag) => creationOf(tag)));
  return { writes: [...names, ...made.flatMap((tag) => newValueWrites(companyId, tag))], answer };
}
