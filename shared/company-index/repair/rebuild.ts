/**
 * Rebuilds a company index from the rows of the table. One update of the head replaces all parts that existed when the rebuild began.
 * Meanwhile, reads, writes and flushes continue, and the parts of these flushes stay.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { at } from "#shared/at.ts";
import { logWrites } from "#shared/company-index/activity/log.ts";
import { logAfter } from "#shared/company-index/change-log.ts";
import { readUnflushed, removeUnflushed, type Unflushed } from "#shared/company-index/delta.ts";
import {
  HEAD_TYPE,
  type Head,
  isUnmoved,
  type Part,
  readHead,
  readManifest,
  type SegmentEntry,
} from "#shared/company-index/manifest.ts";
import {
  newPieceId,
  type PartOverrides,
  piecesOfSegment,
  readPartOverrides,
  removePieces,
} from "#shared/company-index/pieces.ts";
import { isTombstone, type NoteEntry, type NoteText, type Records } from "#shared/company-index/record.ts";
import { addAll, NewestVersions, type Versioned } from "#shared/company-index/versions.ts";
import { RowSorter } from "#shared/company-index/write/order.ts";
import {
  completePart,
  discardPart,
  type IndexContext,
  type NewPart,
  publish,
  storeSegments,
} from "#shared/company-index/write/publish.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Within this many milliseconds, all rows of earlier transactions become visible, and all earlier Queries end. */
const SETTLE_MS = 250;
const TRIES = 30;

/** The rebuild was stopped before it changed the index. The operator may start it again. */
export class RebuildRefused extends Error {
  override name = "RebuildRefused";
}

export interface RebuildOptions {
  readonly settleMs?: number;
  readonly progress?: (step: "read" | "store", prospects: number) => void;
}

export interface Rebuilt {
  readonly prospects: number;
  readonly notes: number;
  readonly segments: number;
  readonly replaced: number;
  /** Number of parts that flushes have added during the rebuild. */
  readonly staying: number;
}

/** The process may stop at any point: the index is then either unchanged or completely replaced. Throws RebuildRefused. */
export async function rebuild(
  context: IndexContext,
  records: Records,
  companyId: number,
  { settleMs = SETTLE_MS, progress = () => undefined }: RebuildOptions = {},
): Promise<Rebuilt> {
  const rebuildId = newPieceId();
  const begun = await acquireLock(context, companyId, rebuildId);
  const lease = keepLocked(context, companyId, rebuildId);
  try {
    const replaced = begun.manifest;
    const before = await readUnflushed(context.table, companyId);
    await sleep(settleMs);
    const { sorter, known, ...counts } = await readRecords(records, companyId, (count) => progress("read", count));
    const rows = counted(sorter.sorted(), (count) => progress("store", count));
    const segments = await storeSegments(context.table, companyId, rows);
    const job = { context, records, companyId, replaced, known, before, segments, settleMs, lease };
    const staying = await replaceParts(job);
    await sleep(settleMs);
    await removeFlushedEntries(job);
    return { ...counts, segments: segments.length, replaced: replaced.length, staying };
  } finally {
    await lease.stop();
    await releaseCompactionLock(context, companyId, rebuildId);
  }
}

/** Takes the compaction lock (see `COMPACTION_LOCK_MS`). Until it is released or expires, no process merges parts. */
async function acquireLock(context: IndexContext, companyId: number, rebuildId: string): Promise<Head> {
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const { head } = await readUnflushed(context.table, companyId);
    const leftMs = head.lockedUntil - context.clock.now();
    if (leftMs > 0) {
      const expiry = `its lock expires in ${Math.ceil(leftMs / 1_000)} s unless it renews it`;
      throw new RebuildRefused(`another rebuild is running or was killed: ${expiry}`);
    }
    const taken = await takeCompactionLock(context, companyId, head, rebuildId);
    if (taken !== undefined) return taken;
    await sleep(Math.random() * 20 * attempt);
  }
  throw keptChanging(companyId);
}

const keptChanging = (companyId: number): RebuildRefused =>
  new RebuildRefused(`the index of company ${companyId} kept changing`);

interface Lease {
  check(): void;
  stop(): Promise<void>;
}

/** Renews the lock. It lasts four times as long as the interval between renewals, so it survives a failed renewal. */
function keepLocked(context: IndexContext, companyId: number, rebuildId: string): Lease {
  let lost = false;
  let last: Promise<void> = Promise.resolve();
  const prolong = (): void => {
    last = renewCompactionLock(context, companyId, rebuildId).catch((error: unknown) => {
      lost ||= error instanceof ConditionFailed;
    });
  };
  const timer = setInterval(prolong, COMPACTION_LOCK_MS / 4);
  return {
    check: () => {
      if (lost) throw new RebuildRefused("another rebuild has taken the lock");
    },
    stop: () => {
      clearInterval(timer);
      return last;
    },
  };
}

async function readRecords(records: Records, companyId: number, progress: (count: number) => void) {
  const sorter = new RowSorter();
  const known = { prospects: new NewestVersions(), notes: new NewestVersions() };
  let [prospects, notes] = [0, 0];
  for await (const some of records.readAll(companyId)) {
    const notesOf = Map.groupBy(some.notes, ({ prospectId }) => prospectId);
    for (const { noteId, version } of some.notes) known.notes.add(noteId, version, 0);
    for (const entry of some.prospects) {
      known.prospects.add(entry.id, entry.version, 0);
      if (isTombstone(entry)) continue;
      const own: NoteText[] = notesOf.get(entry.id) ?? [];
      sorter.add({ row: entry, notes: own });
      prospects++;
      notes += own.length;
    }
    progress(prospects);
  }
  return { sorter, known, prospects, notes };
}

function* counted<T>(entries: Iterable<T>, progress: (count: number) => void): Generator<T> {
  let count = 0;
  for (const entry of entries) {
    yield entry;
    if (++count % 1_000 === 0) progress(count);
  }
}

interface Job {
  readonly context: IndexContext;
  readonly records: Records;
  readonly companyId: number;
  /** The ids of the parts that the rebuild replaces, from the oldest to the newest. */
  readonly replaced: readonly string[];
  readonly known: KnownVersions;
  readonly before: Unflushed;
  readonly segments: SegmentEntry[];
  readonly settleMs: number;
  readonly lease: Lease;
}

/**
 * Returns the number of parts that flushes have added since the rebuild began; these parts stay. If the rebuild is refused, its new
 * segments are deleted. After any other error, they remain, because the update of the head may have succeeded.
 */
async function replaceParts(job: Job): Promise<number> {
  try {
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const staying = await tryToReplaceParts(job);
      if (staying !== undefined) return staying;
      await sleep(Math.random() * 20 * attempt);
    }
    throw keptChanging(job.companyId);
  } catch (error) {
    if (error instanceof RebuildRefused) await removeSegments(job);
    throw error;
  }
}

/** Returns the number of parts that stay, or undefined if another process has changed the head. */
async function tryToReplaceParts(job: Job): Promise<number | undefined> {
  const { context, companyId, segments } = job;
  const unflushed = await readUnflushed(context.table, companyId);
  const staying = await newerParts(job, unflushed.head);
  const partOverrides = await readPartOverrides(context.table, companyId, staying);
  refuseImports(staying, partOverrides);
  const others = { unflushed: [job.before, unflushed], partOverrides };
  const listed = overridesToList(job.known, others, await deletedNotesIn(job, others));
  job.lease.check();
  const part = await completePart(context.table, companyId, segments, { ...listed, looseNotes: [] });
  const manifest = [part, ...staying].map(({ id }) => id);
  // `before` has the entries that were unflushed when the rebuild began, and `unflushed` those that are unflushed now. The rebuild deletes
  // entries without a flush, so it must add their changes to the change log and their facts to the activity log. Entries of `before` that
  // are not in `unflushed` have been flushed meanwhile, so their facts are already in the activity log.
  const logged = {
    changes: [...job.before.changes, ...unflushed.changes],
    others: (version: number) => logWrites(companyId, version, unflushed.facts),
  };
  const moved = await publish(context, companyId, { from: unflushed.head, part, manifest, logged });
  if (moved !== undefined) return staying.length;
  await discardPart(context.table, companyId, { ...part, segments: [] });
  return undefined;
}

const removeSegments = ({ context, companyId, segments }: Job): Promise<void> =>
  removePieces(context.table, companyId, segments.flatMap(piecesOfSegment));

/** Returns the parts that flushes have added since the rebuild began. Throws RebuildRefused if another process has replaced old parts. */
async function newerParts({ context, companyId, replaced }: Job, { manifest }: Head): Promise<readonly Part[]> {
  if (replaced.some((id, age) => manifest[age] !== id)) {
    throw new RebuildRefused("another rebuild or a merge has already replaced the old parts");
  }
  return (await readManifest(context.table, companyId, manifest.slice(replaced.length))).parts;
}

/**
 * Throws RebuildRefused if a staying part comes from an import. The part may contain rows that the rebuild has read too. These rows would
 * be in the index twice: readers ignore a copy only because of `Overrides`, and the part of an import has none.
 */
function refuseImports(staying: readonly Part[], partOverrides: readonly PartOverrides[]): void {
  const isImported = staying.some(({ rows }, i) => rows > at(partOverrides, i).overrides.prospects.ids.length);
  if (isImported) throw new RebuildRefused("an import was completed meanwhile");
}

/** Removes the entries of `before`. Call it only when the new part, which contains the records of these entries, is in the index. */
async function removeFlushedEntries({ context, records, companyId, known, before }: Job): Promise<void> {
  const { entries, notes, keys: all, withLongText } = before;
  const newer = entries.filter(({ id, version }) => version > known.prospects.versionOf(id));
  const newerNotes = notes.filter(({ noteId, version }) => version > known.notes.versionOf(noteId));
  const now = await records.readSome(
    companyId,
    newer.map(({ id }) => id),
    newerNotes,
  );
  const [prospectNow, noteNow] = [new NewestVersions(), new NewestVersions()];
  for (const { id, version } of now.prospects) prospectNow.add(id, version, 0);
  for (const { noteId, version } of now.notes) noteNow.add(noteId, version, 0);
  // An entry may be newer than the row that the rebuild has read. If the table now has the row in the entry's version or in a later one,
  // the entry must stay, because the new part lacks its change. Otherwise, the table lacks the change too, and the entry is deleted.
  const staying = new Set([
    ...newer
      .filter(({ id, version }) => prospectNow.versionOf(id) >= version)
      .map(({ id, version }) => keys.prospectDelta(companyId, id, version).sk),
    ...newerNotes
      .filter(({ noteId, version }) => noteNow.versionOf(noteId) >= version)
      .map(({ prospectId, noteId, version }) => keys.noteDelta(companyId, prospectId, noteId, version).sk),
  ]);
  const going = all.filter(({ sk }) => !staying.has(sk));
  await removeUnflushed(context.table, companyId, { keys: going, withLongText });
}

/** The versions of the records that the rebuild has read, including deleted prospects. */
interface KnownVersions {
  readonly prospects: NewestVersions;
  readonly notes: NewestVersions;
}

/** The unflushed entries and newer parts, which may contain other versions of the records in the new part. */
export interface OtherSources {
  readonly unflushed: readonly Pick<Unflushed, "entries" | "notes">[];
  readonly partOverrides: readonly PartOverrides[];
}

/** Returns the version overrides of the new part: the records whose lower versions in `others` readers must ignore. */
export function overridesToList(
  known: KnownVersions,
  others: OtherSources,
  deletedNotes: ReadonlySet<number>,
): Pick<NewPart, "prospects" | "notes"> {
  const prospects = new Set(others.unflushed.flatMap(({ entries }) => entries.map(({ id }) => id)));
  const claims = noteClaims(others);
  const noteIds = new Set(claims.map(({ noteId }) => noteId));
  for (const { overrides } of others.partOverrides) {
    for (const id of overrides.prospects.ids) prospects.add(id);
    for (const id of overrides.notes.ids) noteIds.add(id);
  }
  const deletions = new NewestVersions();
  // The new part must list the deletion of each note in `deletedNotes`. Otherwise, a copy of the note in `others` would become visible
  // again. A deletion has the version after the note's last version.
  for (const { noteId, version } of claims) if (deletedNotes.has(noteId)) deletions.add(noteId, version + 1, 0);
  return {
    prospects: listed(known.prospects, prospects),
    notes: [...listed(known.notes, noteIds), ...deletions],
  };
}

const listed = (versions: NewestVersions, ids: Iterable<number>): Versioned[] =>
  [...ids].flatMap((id) => {
    const version = versions.versionOf(id);
    return version === 0 ? [] : [{ id, version }];
  });

const noteClaims = ({ unflushed, partOverrides }: OtherSources): NoteEntry[] => [
  ...unflushed.flatMap(({ notes }) => notes),
  ...partOverrides.flatMap(({ looseNotes }) => looseNotes),
];

/**
 * Returns the notes in `others` that have no row, because they were deleted before the rebuild read the table. Reads a missing row again
 * after a pause, because the entry of a new note can become visible before the note's row.
 */
async function deletedNotesIn(
  { records, companyId, known, settleMs }: Job,
  others: OtherSources,
): Promise<ReadonlySet<number>> {
  const deletions = new NewestVersions();
  for (const { overrides } of others.partOverrides) addAll(deletions, overrides.notes, 0);
  const claims = noteClaims(others);
  for (const { noteId, version, text } of claims) if (text === null) deletions.add(noteId, version, 0);
  const isOpen = ({ noteId, version }: NoteEntry): boolean =>
    known.notes.versionOf(noteId) === 0 && deletions.versionOf(noteId) <= version;
  const withoutRow = async (notes: readonly NoteEntry[]): Promise<readonly NoteEntry[]> => {
    if (notes.length === 0) return [];
    const found = new Set((await records.readSome(companyId, [], notes)).notes.map(({ noteId }) => noteId));
    return notes.filter(({ noteId }) => !found.has(noteId));
  };
  const left = await withoutRow(claims.filter((claim) => claim.text !== null && isOpen(claim)));
  if (left.length > 0) await sleep(settleMs);
  return new Set((await withoutRow(left)).map(({ noteId }) => noteId));
}

/**
 * The compaction lock prevents merges during a rebuild. It is a lease of this many milliseconds, which the rebuild renews. It does not use
 * `db/lease.ts`: there, a renewal whose response is lost loses the lease, and a rebuild that has run for minutes would have to begin anew.
 */
export const COMPACTION_LOCK_MS = 60_000;

/** Returns undefined if the head has changed. The lock changes the version of the head, so a merge that is already running fails. */
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

/** Allows flushes to merge parts again. Ignores errors, because the lock expires anyway. */
export async function releaseCompactionLock(
  { table }: IndexContext,
  companyId: number,
  rebuildId: string,
): Promise<void> {
  const change = { remove: ["rebuildId", "lockedUntil"] };
  const ended = table.write({ update: keys.indexHead(companyId), change, when: equals("rebuildId", rebuildId) });
  await ended.catch(() => undefined);
}
