/** The flush moves the delta entries of a company into a new part, and merges parts of similar size as in an LSM tree. */
import { setTimeout as sleep } from "node:timers/promises";
import { activityOf, VERSIONS_PER_SUM } from "#shared/company-index/activity/sum-up.ts";
import type { Logged } from "#shared/company-index/change-log.ts";
import { readUnflushed, removeUnflushed, type Unflushed, withTexts } from "#shared/company-index/delta.ts";
import { type Head, type Part, readManifest, readPartManifests } from "#shared/company-index/manifest.ts";
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

/** The sum of weights at which a flush starts. A flush makes reads cheaper. Below this sum, its writes cost more than the reads save. */
export const FLUSH_ENTRIES = 64;

/** Entries that are older than this many milliseconds are flushed even if they are few. */
export const OLD_MS = 60_000;

const TEXT_TRIES = 5;

/** Milliseconds from the update of the head to the deletion of the flushed entries. A Query that returns the old head must find them. */
const SETTLE_MS = 250;

export interface Flushed {
  readonly entries: number;
  /** The weight of the entries that are left, because there are too few or another process has changed the index first. */
  readonly left: number;
  readonly merges: number;
  /** Milliseconds since 1970. Before this time, no entry that is left is older than `OLD_MS`. */
  readonly youngUntil: number;
}

interface Place extends IndexContext {
  readonly companyId: number;
}

/**
 * Flushes if the sum of weights is at least `least`, or if `whenOld` is true and an entry may be older than `OLD_MS`. The process may stop
 * at any point, and the flush may be repeated or run twice at the same time.
 */
export async function flush(
  { table, clock }: IndexContext,
  companyId: number,
  { least = FLUSH_ENTRIES, settleMs = SETTLE_MS, sumAfter = VERSIONS_PER_SUM, whenOld = false } = {},
): Promise<Flushed> {
  const place = { table, clock, companyId };
  const unflushed = await readUnflushed(table, companyId);
  const { head } = unflushed;
  const entries = unflushed.keys.length;
  const unchanged = { entries: 0, left: unflushed.weight, merges: 0, youngUntil: head.flushedAt + OLD_MS };
  const isOld = whenOld && entries > 0 && clock.now() >= unchanged.youngUntil;
  if (unflushed.weight < least && !isOld) return unchanged;
  const [partManifests, activity] = await Promise.all([
    readPartManifests(table, companyId, "strong"),
    activityOf(table, companyId, unflushed, { nowMs: clock.now(), sumAfter }),
  ]);
  const { parts } = await readManifest(table, companyId, head.manifest, { partManifests });
  const before = { head, parts };
  const built = await newPart(place, parts, unflushed);
  const flushedAt = clock.now();
  const logged = { changes: unflushed.changes, others: () => activity.writes, flushedAt };
  const after = await putEntries(place, before, built, logged);
  if (after === undefined) return unchanged;
  await sleep(settleMs);
  await Promise.all([removeUnflushed(table, companyId, unflushed), table.batchRemove(activity.done)]);
  await collectGarbage(table, companyId, head.manifest, partManifests, clock.now());
  // Delete the flushed entries before the merge, which may drop the deletions of records. Otherwise, nothing would hide an older entry of a
  // deleted record, and the record would become visible again.
  const merges = after.merges + (await mergeAll(place, after.state));
  return { entries, left: 0, merges, youngUntil: flushedAt + OLD_MS };
}

interface IndexState {
  readonly head: Head;
  readonly parts: readonly Part[];
}

interface Put {
  readonly state: IndexState;
  readonly merges: number;
}

/**
 * Adds the entries as a new part. If this part would then have to be merged with older parts, but not with the oldest one, merges them at
 * once, so that the entries are written only once. Returns undefined if another process has changed the index first.
 *
 * `built` is undefined if the parts have newer versions of all changed prospects and notes. The entries are then added only to the change
 * log, which may lack them: an earlier flush may have moved the later of two changes of a record, and missed the earlier one.
 */
async function putEntries(
  place: Place,
  before: IndexState,
  built: BuiltPart | undefined,
  logged: Logged,
): Promise<Put | undefined> {
  const { head, parts } = before;
  if (built === undefined) {
    const moved = await publish(place, place.companyId, { from: head, manifest: head.manifest, logged });
    return moved === undefined ? undefined : { state: { head: moved, parts }, merges: 0 };
  }
  const from = isCompactionLocked(place, head) ? undefined : mergeable([...parts, { rows: built.rows.length }]);
  const isMerge = from !== undefined && from > 0;
  const kept = isMerge ? parts.slice(0, from) : parts;
  const merging = isMerge ? await partsToMerge(place.table, place.companyId, parts.slice(from)) : [];
  const part = isMerge ? mergeParts([...merging, inMemory(built, merging.length)], false) : built;
  const state = await putPart(place, before, { kept, part, logged });
  return state === undefined ? undefined : { state, merges: isMerge ? 1 : 0 };
}

/** True during a rebuild. It replaces the older parts and keeps the newer ones, so no part may be merged from older and newer ones. */
const isCompactionLocked = ({ clock }: IndexContext, { lockedUntil }: Head): boolean => lockedUntil > clock.now();

async function mergeAll(place: Place, before: IndexState): Promise<number> {
  let state: IndexState | undefined = before;
  for (let merges = 0; ; merges++) {
    const from = isCompactionLocked(place, state.head) ? undefined : mergeable(state.parts);
    if (from === undefined) return merges;
    state = await merge(place, state, from);
    if (state === undefined) return merges;
  }
}

interface BuiltPart extends NewPart {
  readonly rows: readonly RowWithNotes[];
}

async function newPart(
  { table, companyId }: Place,
  parts: readonly Part[],
  unflushed: Unflushed,
): Promise<BuiltPart | undefined> {
  const partOverrides = await readPartOverrides(table, companyId, parts);
  const known = flushedVersions(partOverrides);
  const newest = newestUnflushed(known, unflushed.entries, unflushed.notes);
  const delta = await withSettledTexts(table, companyId, newest, known, unflushed);
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

/** Tries again if a long text is missing: a Query is not isolated from transactions, so a text may become visible later than its entry. */
async function withSettledTexts(
  table: Table,
  companyId: number,
  newest: Delta,
  known: FlushedVersions,
  unflushed: Unflushed,
): Promise<Delta> {
  for (let attempt = 1; ; attempt++) {
    const { delta, missing } = await withTexts(table, companyId, newest, known, unflushed);
    if (missing === 0) return delta;
    if (attempt === TEXT_TRIES) throw new Error(`${missing} unflushed entries of company ${companyId} lack texts`);
    await sleep(20 * attempt);
  }
}

interface Replacement {
  /** The parts before the new one, which replaces all others. */
  readonly kept: readonly Part[];
  readonly part: NewPart;
  readonly logged: Logged;
}

/** Stores the part and adds it to the index. Returns undefined if another process has changed the index first. */
async function putPart(
  place: Place,
  { head: from }: IndexState,
  { kept, part: built, logged }: Replacement,
): Promise<IndexState | undefined> {
  const { table, companyId } = place;
  const part = await storePart(table, companyId, built);
  const parts = [...kept, part];
  const head = await publish(place, companyId, { from, part, manifest: parts.map(({ id }) => id), logged });
  if (head !== undefined) return { head, parts };
  await discardPart(table, companyId, part);
  return undefined;
}

/** A part is merged with all newer parts when these have this many times as many rows. A higher ratio means more parts and fewer writes. */
export const MERGE_RATIO = 9;

/** Returns the position of the oldest part to merge with all newer ones. Parts grow tenfold from level to level, as in an LSM tree. */
function mergeable(parts: readonly Pick<Part, "rows">[]): number | undefined {
  let newer = 0;
  let first: number | undefined;
  for (const [age, { rows }] of [...parts.entries()].reverse()) {
    // A part with only deletions and notes has 0 rows. Without this minimum of 1, the next flush would always merge it.
    const size = Math.max(1, rows);
    if (newer > 0 && newer >= size * (age === 0 ? 1 : MERGE_RATIO)) first = age;
    newer += size;
  }
  return first;
}

async function merge(place: Place, state: IndexState, from: number): Promise<IndexState | undefined> {
  const merging = await partsToMerge(place.table, place.companyId, state.parts.slice(from));
  if (from === 0 && (await hasRemainders(place, flushedVersions(merging)))) return undefined;
  return putPart(place, state, { kept: state.parts.slice(0, from), part: mergeParts(merging, from === 0), logged: {} });
}

/**
 * Returns true if an entry has a lower version than its record has in the parts. An earlier flush has missed such an entry, because a Query
 * is not isolated from writes. If the record was deleted, only the deletion hides the entry, so a merge must not drop deletions yet.
 */
async function hasRemainders(
  { table, companyId }: Place,
  { prospectVersions, noteVersions }: FlushedVersions,
): Promise<boolean> {
  const { entries, notes, withLongText } = await readUnflushed(table, companyId);
  // If an entry has a long text, entries with the same version as in the parts count too (`least` is 1). A flush that stopped early may
  // have deleted the text and not the entry. Readers ignore this entry because the parts contain its version, so a merge must not drop it.
  const least = withLongText.size > 0 ? 1 : 0;
  return (
    entries.some(({ id, version }) => version < prospectVersions.versionOf(id) + least) ||
    notes.some(({ noteId, version }) => version < noteVersions.versionOf(noteId) + least)
  );
}
