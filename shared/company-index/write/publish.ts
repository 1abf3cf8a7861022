/** Puts a new run into a company's index, in place of some of its runs or beside them, by one move of the head. */

import { setTimeout as sleep } from "node:timers/promises";
import { type Zone, zoneOf } from "#shared/company-index/criteria.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
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
import { encodeNotes, encodeOverrides } from "#shared/company-index/versions.ts";
import { retiredIn } from "#shared/company-index/write/garbage-collection.ts";
import { cutIntoSegments, SEGMENT_ROWS, sortedByGeohash } from "#shared/company-index/write/order.ts";
import type { AppContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { TableBusy } from "#shared/errors.ts";

/** Overrides up to this size stand in their run's sheet: an item of their own would be paid twice, written and removed. */
const FEW_BYTES = 2_048;

export type IndexContext = Pick<AppContext, "table" | "clock">;

export interface NewRun {
  /** In the order of the curve. */
  readonly rows: Iterable<RowWithNotes>;
  readonly looseNotes: readonly NoteText[];
  /** Versions that hide older ones in other runs. */
  readonly prospects: readonly { readonly id: number; readonly version: number }[];
  readonly notes: readonly { readonly id: number; readonly version: number }[];
}

/** Stores the run's pieces, one segment after the other. Nothing leads to them yet. `newId` names the run and each segment. */
export const storeRun = async (table: Table, companyId: number, built: NewRun, newId = newPieceId): Promise<Run> =>
  completeRun(table, companyId, await storeSegments(table, companyId, built.rows, newId), built, newId);

/** `rows` in the order of the curve. `between` is awaited before each segment. */
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

/** The run of these segments with what stands beside them. */
export async function completeRun(
  table: Table,
  companyId: number,
  segments: SegmentEntry[],
  { prospects, notes, looseNotes: loose }: Omit<NewRun, "rows">,
  newId = newPieceId,
): Promise<Run> {
  const id = newId();
  const aside = encodeRunOverrides(prospects, notes, loose);
  const isFew = aside.overrides !== undefined && aside.overrides.length <= FEW_BYTES;
  const [overrides, looseNotes] = await Promise.all([
    storePiece(table, companyId, id, "overrides", isFew ? undefined : aside.overrides),
    storePiece(table, companyId, id, "notes", aside.looseNotes),
  ]);
  const rows = segments.reduce((sum, one) => sum + one.rows, 0);
  return { id, rows, overrides, looseNotes, segments, fewOverrides: isFew ? aside.overrides : undefined };
}

/** Gives its parts. */
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
 * Makes `manifest`, with this run in it, what holds. The run's sheet says which runs it takes the place of, so that what
 * nothing leads to any more is found by whoever sweeps. Gives the head as it is then, or undefined when somebody else moved it
 * first: then nothing leads to the run.
 */
export async function publish(
  { table, clock }: IndexContext,
  companyId: number,
  from: Head,
  run: Run,
  manifest: readonly string[],
  commit?: Commit,
): Promise<Head | undefined> {
  const replaced = from.manifest.filter((id) => !manifest.includes(id));
  await table.batchPut([runManifestItem(companyId, runManifestOf(run, clock.now(), replaced))]);
  const next: Head = { ...from, version: from.version + 1, manifest: [...manifest] };
  const standing = await moveHead(table, companyId, from, next, commit);
  if (standing === undefined || (await wasPublished(table, companyId, standing, run.id))) return next;
  return undefined;
}

/** Whether the run is in the index, or was and has been replaced since. */
async function wasPublished(table: Table, companyId: number, { manifest }: Head, runId: string): Promise<boolean> {
  if (manifest.includes(runId)) return true;
  return retiredIn(manifest, await readRunManifests(table, companyId, "strong")).has(runId);
}

/** Nothing led to it, or nothing will. */
export async function discardRun(table: Table, companyId: number, run: Run): Promise<void> {
  await removePieces(table, companyId, piecesOf({ runs: [run] }));
  await table.batchRemove([keys.runManifest(companyId, run.id)]);
}

export interface BuiltSegment {
  readonly rows: number;
  readonly zone: Zone;
  readonly groups: Record<Group, Uint8Array>;
}

/** `rows` in the order of the curve. One segment at a time, so that a run may be larger than memory. */
export function* buildSegments(rows: Iterable<RowWithNotes>, maxRows = SEGMENT_ROWS): Generator<BuiltSegment> {
  for (const entries of cutIntoSegments(rows, maxRows)) {
    yield { rows: entries.length, zone: zoneOf(entries.map(({ row }) => row)), groups: encodeSegment(entries) };
  }
}

interface Versioned {
  readonly id: number;
  readonly version: number;
}

/** Undefined where there is nothing to store. */
export interface EncodedRunOverrides {
  readonly overrides: Uint8Array | undefined;
  readonly looseNotes: Uint8Array | undefined;
}

export const encodeRunOverrides = (
  prospects: readonly Versioned[],
  notes: readonly Versioned[],
  looseNotes: readonly NoteText[],
): EncodedRunOverrides => ({
  overrides: prospects.length + notes.length === 0 ? undefined : encodeOverrides(prospects, notes),
  looseNotes: looseNotes.length === 0 ? undefined : encodeNotes(looseNotes),
});

const TRIES = 20;

export interface ImportedOptions {
  /** Names what is stored, so that it can be found where the head never comes to lead to it. */
  readonly newId?: () => string;
  /** What becomes true with the move of the head. */
  readonly commit?: Commit;
}

/** Rows of prospects that the index has never heard of, with their notes. All of them are found from one moment on. */
export async function addImported(
  context: IndexContext,
  companyId: number,
  rows: readonly RowWithNotes[],
  { newId, commit }: ImportedOptions = {},
): Promise<void> {
  const built = { rows: sortedByGeohash(rows), looseNotes: [], prospects: [], notes: [] };
  await addRun(context, companyId, await storeRun(context.table, companyId, built, newId), commit);
}

/** A run whose pieces are stored. Where it cannot be added, they are removed. */
export async function addRun(context: IndexContext, companyId: number, run: Run, commit?: Commit): Promise<void> {
  const { table } = context;
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const { head } = await readUnflushed(table, companyId);
    const moved = await publish(context, companyId, head, run, [...head.manifest, run.id], commit);
    if (moved !== undefined) return;
    await sleep(Math.random() * 20 * attempt);
  }
  await discardRun(table, companyId, run);
  throw new TableBusy(`the index of company ${companyId} kept changing`);
}
