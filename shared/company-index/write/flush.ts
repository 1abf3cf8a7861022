/** The flush moves the delta entries of a company into a new part, and merges parts of similar size as in an LSM tree. */

import { setTimeout as sleep } from "node:timers/promises";
import { readUnflushedFacts } from "#shared/company-index/activity/read.ts";
import { activityOf, VERSIONS_PER_SUM } from "#shared/company-index/activity/sum-up.ts";
import { chunkWrites, type Logged, logAfter } from "#shared/company-index/change-log.ts";
import { readUnflushed, removeUnflushed, type Unflushed, withTexts } from "#shared/company-index/delta.ts";
import { type Head, moveHead, type Part, readManifest, readPartManifests } from "#shared/company-index/manifest.ts";
import { readPartOverrides } from "#shared/company-index/pieces.ts";
import { isTombstone } from "#shared/company-index/record.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { type Delta, type FlushedVersions, flushedVersions, newestUnflushed } from "#shared/company-index/versions.ts";
import { collectGarbage } from "#shared/company-index/write/garbage-collection.ts";
import { inMemory, mergeParts, partsToMerge } from "#shared/company-index/write/merge.ts";
import { sortedByGeohash } from "#shared/company-index/write/order.ts";
import {
  discardPart,
  type IndexContext,
  type NewPart,
  publish,
  storePart,
} from "#shared/company-index/write/publish.ts";
import type { Table } from "#shared/db/table.ts";

/** The total weight at which a flush starts. A flush makes later reads cheaper, but below this weight its own writes outweigh that. */
export const FLUSH_ENTRIES = 64;

/** In milliseconds. Older entries are flushed even if they are few. */
export const OLD_MS = 60_000;

const TEXT_TRIES = 5;

/** Milliseconds before the flushed entries are deleted. A Query that still returns the old head row must find them. */
const SETTLE_MS = 250;

export interface Flushed {
  readonly entries: number;
  /** The weight of the entries that are left, because there are too few or another process has changed the index first. */
  readonly left: number;
  readonly merges: number;
  /** Milliseconds since 1970. Before this time, no entry that is left is older than `OLD_MS`. */
  readonly youngUntil: number;
}

/**
 * Flushes if the total weight is at least `least`, or if `whenOld` is true and an entry may be older than `OLD_MS`. The process may stop at
 * any point, and the flush may be repeated or run twice at the same time.
 */
export async function flush(
  context: IndexContext,
  companyId: number,
  { least = FLUSH_ENTRIES, settleMs = SETTLE_MS, sumAfter = VERSIONS_PER_SUM, whenOld = false } = {},
): Promise<Flushed> {
  const { table, clock } = context;
  const unflushed = await readUnflushedFacts(table, companyId);
  const { head } = unflushed;
  const entries = unflushed.keys.length;
  const unchanged = { entries: 0, left: unflushed.weight, merges: 0, youngUntil: head.flushedAt + OLD_MS };
  const isOld = whenOld && entries > 0 && clock.now() >= unchanged.youngUntil;
  if (unflushed.weight < least && !isOld) return unchanged;
  const [partManifests, activity] = await Promise.all([
    readPartManifests(table, companyId, "strong"),
    activityOf(table, companyId, unflushed, { nowMs: clock.now(), sumAfter }),
  ]);
  const before: IndexState = {
    head,
    parts: (await readManifest(table, companyId, head.manifest, { partManifests })).parts,
  };
  const built = await newPart(table, companyId, before.parts, unflushed);
  const flushedAt = clock.now();
  const logged = { changes: unflushed.changes, others: () => activity.writes, flushedAt };
  const after = await (built === undefined
    ? logOnly(context, companyId, before, logged)
    : putNewPart(context, companyId, before, built, logged));
  if (after === undefined) return unchanged;
  await sleep(settleMs);
  await Promise.all([removeUnflushed(table, companyId, unflushed), table.batchRemove(activity.done)]);
  if (after.state !== before) await collectGarbage(table, companyId, head.manifest, partManifests, clock.now());
  // The flushed entries are deleted before the merge. A merge may drop the records of deletions. If an older entry of a deleted record were
  // still stored then, nothing would hide it, and the record would become visible again.
  return {
    entries,
    left: 0,
    merges: after.merges + (await mergeAll(context, companyId, after.state)),
    youngUntil: flushedAt + OLD_MS,
  };
}

interface Put {
  readonly state: IndexState;
  readonly merges: number;
}

/**
 * If an additional part would make a merge necessary, merges entries and older parts at once, so that the entries are written only once. The
 * oldest part is an exception. Returns undefined if another process has changed the index first.
 */
async function putNewPart(
  context: IndexContext,
  companyId: number,
  before: IndexState,
  built: BuiltPart,
  logged: Logged,
): Promise<Put | undefined> {
  const { head, parts } = before;
  const sizes = [...parts, { rows: built.rows.length }];
  const from = isCompactionLocked(context, head) ? undefined : mergeable(sizes);
  const isMerge = from !== undefined && from > 0;
  const part = isMerge
    ? mergeParts(
        [...(await partsToMerge(context.table, companyId, parts.slice(from))), inMemory(built, parts.length)],
        false,
      )
    : built;
  const state = await putPart(context, companyId, before, isMerge ? from : parts.length, part, logged);
  return state === undefined ? undefined : { state, merges: isMerge ? 1 : 0 };
}

/**
 * Adds the entries to the change log only. An earlier flush may have moved the later of two changes of a record but missed the earlier one,
 * and the log lacks the earlier one. Returns undefined if another process has changed the index first.
 */
async function logOnly(
  { table, clock }: IndexContext,
  companyId: number,
  { head, parts }: IndexState,
  logged: Logged,
): Promise<Put | undefined> {
  const chunk = chunkWrites(companyId, head, logged, clock.now());
  const { flushedAt = head.flushedAt } = logged;
  const next: Head = { ...head, version: head.version + 1, flushedAt, ...logAfter(head, chunk.length > 0) };
  const others = logged.others?.(next.version) ?? [];
  const current = await moveHead(table, companyId, head, next, { chunk: [...chunk, ...others] });
  return current === undefined ? { state: { head: next, parts }, merges: 0 } : undefined;
}

/** A rebuild replaces the parts that existed when it began and keeps newer ones. It could do neither with a part merged from both. */
const isCompactionLocked = ({ clock }: IndexContext, { lockedUntil }: Head): boolean => lockedUntil > clock.now();

async function mergeAll(context: IndexContext, companyId: number, before: IndexState): Promise<number> {
  let state: IndexState | undefined = before;
  for (let merges = 0; ; merges++) {
    if (isCompactionLocked(context, state.head)) return merges;
    const from = mergeable(state.parts);
    if (from === undefined) return merges;
    state = await merge(context, companyId, state, from);
    if (state === undefined) return merges;
  }
}

interface IndexState {
  readonly head: Head;
  readonly parts: readonly Part[];
}

interface BuiltPart extends NewPart {
  readonly rows: readonly RowWithNotes[];
}

async function newPart(
  table: Table,
  companyId: number,
  parts: readonly Part[],
  unflushed: Unflushed,
): Promise<BuiltPart | undefined> {
  const partOverrides = await readPartOverrides(table, companyId, parts);
  const known = flushedVersions(partOverrides);
  const newest = newestUnflushed(known, unflushed.entries, unflushed.notes);
  const delta = await withSettledTexts(table, companyId, newest, known, unflushed.withLongText);
  const prospects = [...delta.prospects.values()];
  const notes = [...delta.notes.values()];
  if (prospects.length + notes.length === 0) return undefined;
  return {
    rows: sortedByGeohash(prospects.flatMap((entry) => (isTombstone(entry) ? [] : [{ row: entry, notes: [] }]))),
    looseNotes: notes.flatMap(({ text, ...note }) => (text === null ? [] : [{ ...note, text }])),
    prospects,
    notes: notes.map(({ noteId, version }) => ({ id: noteId, version })),
  };
}

/** A Query is not isolated from transactions, so a text may become visible later than its entry. */
async function withSettledTexts(
  table: Table,
  companyId: number,
  newest: Delta,
  known: FlushedVersions,
  withLongText: ReadonlySet<string>,
): Promise<Delta> {
  for (let attempt = 1; ; attempt++) {
    const { delta, missing } = await withTexts(table, companyId, newest, known, withLongText);
    if (missing === 0) return delta;
    if (attempt === TEXT_TRIES) throw new Error(`${missing} unflushed entries of company ${companyId} lack texts`);
    await sleep(20 * attempt);
  }
}

/** Replaces the parts at the positions `from` and above. Returns undefined if another process has changed the index first. */
async function putPart(
  context: IndexContext,
  companyId: number,
  { head, parts }: IndexState,
  from: number,
  built: NewPart,
  logged: Logged,
): Promise<IndexState | undefined> {
  const part = await storePart(context.table, companyId, built);
  const next = [...parts.slice(0, from), part];
  const manifest = next.map(({ id }) => id);
  const moved = await publish(context, companyId, head, part, manifest, logged);
  if (moved !== undefined) return { head: moved, parts: next };
  await discardPart(context.table, companyId, part);
  return undefined;
}

/**
 * A part is merged with all newer parts when these together have at least MERGE_RATIO times as many rows. With a higher ratio, readers read
 * more parts, but rows are rewritten less often.
 */
export const MERGE_RATIO = 9;

/**
 * Returns the position of the oldest part that must be merged with all newer parts, or undefined. As in an LSM tree, the sizes of parts grow
 * tenfold from level to level. The oldest part is merged as soon as all other parts together have as many rows.
 */
function mergeable(parts: readonly Sized[]): number | undefined {
  let newer = 0;
  let first: number | undefined;
  for (let age = parts.length - 1; age >= 0; age--) {
    const size = sizeOf(parts[age]);
    if (newer > 0 && newer >= size * (age === 0 ? 1 : MERGE_RATIO)) first = age;
    newer += size;
  }
  return first;
}

type Sized = Pick<Part, "rows">;

/** At least 1. A part of deletions and notes has 0 rows, and the next flush would always merge it. */
const sizeOf = (part: Sized | undefined): number => Math.max(1, part?.rows ?? 0);

async function merge(
  context: IndexContext,
  companyId: number,
  state: IndexState,
  from: number,
): Promise<IndexState | undefined> {
  const toMerge = await partsToMerge(context.table, companyId, state.parts.slice(from));
  if (from === 0 && (await hasRemainders(context.table, companyId, flushedVersions(toMerge)))) return undefined;
  return putPart(context, companyId, state, from, mergeParts(toMerge, from === 0), {});
}

/**
 * Returns true if an entry has a lower version than its record has in the parts. An earlier flush missed it, because a Query is not isolated
 * from writes. If the record was deleted, only the deletion in the parts hides the entry, so a merge must not drop deletions yet.
 */
async function hasRemainders(
  table: Table,
  companyId: number,
  { prospectVersions, noteVersions }: FlushedVersions,
): Promise<boolean> {
  const { entries, notes, withLongText } = await readUnflushed(table, companyId);
  // If an entry has a long text, `least` is 1, so that entries with the same version as in the parts are found too. A flush that stopped
  // early may have deleted the long text of such an entry, but not the entry. Readers ignore this entry only because the parts contain its
  // version, so a merge must not drop the version.
  const least = withLongText.size > 0 ? 1 : 0;
  return (
    entries.some(({ id, version }) => version < prospectVersions.versionOf(id) + least) ||
    notes.some(({ noteId, version }) => version < noteVersions.versionOf(noteId) + least)
  );
}
