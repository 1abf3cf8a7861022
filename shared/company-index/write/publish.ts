/**
 * Adds runs (sorted batches of rows) to a company's search index. The data of a run is stored first, where no reader finds it. Then one
 * update of the head row, which lists the runs, makes the data visible.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { importedWrite, logWrites } from "#shared/company-index/activity/log.ts";
import { chunkWrites, type IdRange, type Logged, logAfter } from "#shared/company-index/change-log.ts";
import { type Zone, zoneOf } from "#shared/company-index/criteria.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { type Fact, ImportCollector } from "#shared/company-index/facts.ts";
import {
  type Commit,
  type Head,
  moveHead,
  type Run,
  readRunManifests,
  runManifestItem,
  runManifestOf,
  type SegmentEntry,
} from "#shared/company-index/manifest.ts";
import { cutPiece, newPieceId, piecesOf, removePieces, type StoredPiece } from "#shared/company-index/pieces.ts";
import type { NoteText } from "#shared/company-index/record.ts";
import { encodeSegment, type Group, type RowWithNotes } from "#shared/company-index/segment.ts";
import { encodeNotes, encodeOverrides, type Versioned } from "#shared/company-index/versions.ts";
import { retiredIn } from "#shared/company-index/write/garbage-collection.ts";
import { cutIntoSegments, SEGMENT_ROWS, sortedByGeohash } from "#shared/company-index/write/order.ts";
import type { AppContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { TableBusy } from "#shared/errors.ts";

/**
 * Maximum bytes of version overrides inside the run manifest. Overrides show which rows of older runs are outdated. Larger overrides are in
 * a separate item, which costs one more write, and later a delete.
 */
const INLINE_BYTES = 2_048;

export type IndexContext = Pick<AppContext, "table" | "clock">;

export interface NewRun {
  /** The rows, sorted by geohash. */
  readonly rows: Iterable<RowWithNotes>;
  readonly looseNotes: readonly NoteText[];
  /** The versions of prospects in the run, including deleted ones. Readers ignore lower versions of these prospects in other runs. */
  readonly prospects: readonly Versioned[];
  readonly notes: readonly Versioned[];
}

/**
 * Stores the data of a run (a sorted batch of rows), but does not add the run to the index. `newId` creates the ids of the run and of its
 * segments.
 */
export const storeRun = async (table: Table, companyId: number, built: NewRun, newId = newPieceId): Promise<Run> =>
  completeRun(table, companyId, await storeSegments(table, companyId, built.rows, newId), built, newId);

/**
 * Stores the rows as segments (units of up to 4 096 rows). `rows` must be sorted by geohash. `between` is called and awaited before each
 * segment is stored, for example to renew a lease.
 */
export async function storeSegments(
  table: Table,
  companyId: number,
  rows: Iterable<RowWithNotes>,
  newId = newPieceId,
  between: () => Promise<void> = async () => undefined,
): Promise<SegmentEntry[]> {
  const segments: SegmentEntry[] = [];
  for (const { rows: count, zone, groups } of buildSegments(rows)) {
    await between();
    const id = newId();
    const [main, geo, text] = await Promise.all([
      storePiece(table, companyId, id, "main", groups.main),
      storePiece(table, companyId, id, "geo", groups.geo),
      storePiece(table, companyId, id, "text", groups.text),
    ]);
    const bytes = groups.main.length + groups.geo.length + groups.text.length;
    segments.push({ id, rows: count, zone, bytes, parts: { main, geo, text } });
  }
  return segments;
}

/**
 * Stores the version overrides (which mark rows of older runs as outdated), and the notes whose prospects are in other runs. Returns the
 * run, which consists of this data and the segments.
 */
export async function completeRun(
  table: Table,
  companyId: number,
  segments: SegmentEntry[],
  { prospects, notes, looseNotes: loose }: Omit<NewRun, "rows">,
  newId = newPieceId,
): Promise<Run> {
  const id = newId();
  const encoded = encodeRunOverrides(prospects, notes, loose);
  const isInline = encoded.overrides !== undefined && encoded.overrides.length <= INLINE_BYTES;
  const [overrides, looseNotes] = await Promise.all([
    storePiece(table, companyId, id, "overrides", isInline ? undefined : encoded.overrides),
    storePiece(table, companyId, id, "notes", encoded.looseNotes),
  ]);
  const rows = segments.reduce((sum, one) => sum + one.rows, 0);
  return { id, rows, overrides, looseNotes, segments, fewOverrides: isInline ? encoded.overrides : undefined };
}

async function storePiece(
  table: Table,
  companyId: number,
  owner: string,
  name: string,
  bytes: Uint8Array | undefined,
): Promise<StoredPiece["parts"]> {
  if (bytes === undefined) return 0;
  const { parts, items } = cutPiece(companyId, owner, name, bytes);
  await table.batchPut(items);
  return parts;
}

/**
 * Adds a stored run to the index: replaces the list of runs in the head row by `manifest`, which must contain the new run. Returns the new
 * head row, or undefined if another process has changed the head row since `from` was read. First stores the run manifest, a separate row
 * that lists the runs that the new run replaces. Garbage collection deletes these runs later. `logged` becomes a chunk of the change log.
 * It must contain every unflushed entry (recent change) that the caller will delete.
 */
export async function publish(
  { table, clock }: IndexContext,
  companyId: number,
  from: Head,
  run: Run,
  manifest: readonly string[],
  logged: Logged,
  commit?: Commit,
): Promise<Head | undefined> {
  const replaced = from.manifest.filter((id) => !manifest.includes(id));
  await table.batchPut([runManifestItem(companyId, runManifestOf(run, clock.now(), replaced))]);
  const chunk = chunkWrites(companyId, from, logged, clock.now());
  const next: Head = {
    ...from,
    version: from.version + 1,
    manifest: [...manifest],
    flushedAt: logged.flushedAt ?? from.flushedAt,
    ...logAfter(from, chunk.length > 0),
  };
  const others = logged.others?.(next.version) ?? [];
  const current = await moveHead(table, companyId, from, next, { chunk: [...chunk, ...others], commit });
  if (current === undefined || (await wasPublished(table, companyId, current, run.id))) return next;
  return undefined;
}

/** Returns true if the index contains the run now, or contained it before newer runs replaced it. */
async function wasPublished(table: Table, companyId: number, { manifest }: Head, runId: string): Promise<boolean> {
  if (manifest.includes(runId)) return true;
  return retiredIn(manifest, await readRunManifests(table, companyId, "strong")).has(runId);
}

export async function discardRun(table: Table, companyId: number, run: Run): Promise<void> {
  await removePieces(table, companyId, piecesOf({ runs: [run] }));
  await table.batchRemove([keys.runManifest(companyId, run.id)]);
}

export interface BuiltSegment {
  readonly rows: number;
  readonly zone: Zone;
  readonly groups: Record<Group, Uint8Array>;
}

/** Yields the segments of sorted rows one by one. Only one segment is in memory at a time, so a run may be larger than the memory. */
export function* buildSegments(rows: Iterable<RowWithNotes>, maxRows = SEGMENT_ROWS): Generator<BuiltSegment> {
  for (const entries of cutIntoSegments(rows, maxRows)) {
    yield { rows: entries.length, zone: zoneOf(entries.map(({ row }) => row)), groups: encodeSegment(entries) };
  }
}

export const encodeRunOverrides = (
  prospects: readonly Versioned[],
  notes: readonly Versioned[],
  looseNotes: readonly NoteText[],
) => ({
  overrides: prospects.length + notes.length === 0 ? undefined : encodeOverrides(prospects, notes),
  looseNotes: looseNotes.length === 0 ? undefined : encodeNotes(looseNotes),
});

const TRIES = 20;

export interface ImportedOptions {
  /**
   * Creates the ids of the stored data. A caller that chooses these ids itself can find and delete the data even if the run is never added
   * to the index.
   */
  readonly newId?: () => string;
  /**
   * Executes the writes that add the run (the batch of new rows) to the index, together with other writes of the caller. Without this
   * function, the writes that add the run are executed alone.
   */
  readonly commit?: Commit;
  /** The user who imports the rows. Their creation, status changes and notes then count as this user's activity. */
  readonly by?: number;
  /** Facts (things that users have done) that are added to the activity log with the rows. They are used only if `by` is undefined. */
  readonly facts?: readonly Fact[];
}

/**
 * Adds new prospects with their notes to the index as one run (a sorted batch of rows), so all of them become visible at the same moment.
 * Other changes are first stored one by one, and a flush combines them into a run later.
 */
export async function addImported(
  context: IndexContext,
  companyId: number,
  rows: readonly RowWithNotes[],
  { newId, commit, by, facts = [] }: ImportedOptions = {},
): Promise<void> {
  const built = { rows: sortedByGeohash(rows), looseNotes: [], prospects: [], notes: [] };
  const range = rangeOf(rows);
  const others =
    by === undefined || range === undefined
      ? (version: number) => logWrites(companyId, version, facts)
      : importedFacts(companyId, by, range, rows);
  const run = await storeRun(context.table, companyId, built, newId);
  await addRun(context, companyId, run, { ...(range !== undefined && { range }), others }, commit);
}

/**
 * Returns a function for `Logged.others`. It makes a write for the activity log. This write counts the creation, the status changes and the
 * notes of these rows as the user's activity. It belongs to the transaction that makes the rows visible.
 */
const importedFacts = (companyId: number, by: number, { from, to }: IdRange, rows: readonly RowWithNotes[]) => {
  const collector = new ImportCollector(by, from, to);
  for (const row of rows) collector.add(row);
  return (version: number) => [importedWrite(companyId, version, collector.facts)];
};

function rangeOf(rows: readonly RowWithNotes[]): IdRange | undefined {
  if (rows.length === 0) return undefined;
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { row } of rows) [from, to] = [Math.min(from, row.id), Math.max(to, row.id)];
  return { from, to };
}

/**
 * Adds a run (a sorted batch of rows) whose data is already stored. `logged` contains the range of its prospects' ids. If other processes
 * change the head row at every attempt, deletes the data of the run and throws TableBusy.
 */
export async function addRun(
  context: IndexContext,
  companyId: number,
  run: Run,
  logged: Logged,
  commit?: Commit,
): Promise<void> {
  const { table } = context;
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const { head } = await readUnflushed(table, companyId);
    const moved = await publish(context, companyId, head, run, [...head.manifest, run.id], logged, commit);
    if (moved !== undefined) return;
    await sleep(Math.random() * 20 * attempt);
  }
  await discardRun(table, companyId, run);
  throw new TableBusy(`the index of company ${companyId} kept changing`);
}
