/** Adds parts to a company index. One update of the head makes stored data visible. */
import { setTimeout as sleep } from "node:timers/promises";
import { chunkWrites, type IdRange, type Logged, logAfter } from "#shared/company-index/change-log.ts";
import { zoneOf } from "#shared/company-index/criteria.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import {
  type Commit,
  type Head,
  moveHead,
  type Part,
  partManifestItem,
  readPartManifests,
  type SegmentEntry,
} from "#shared/company-index/manifest.ts";
import { cutPiece, newPieceId, piecesOf, removePieces } from "#shared/company-index/pieces.ts";
import type { NoteText } from "#shared/company-index/record.ts";
import { encodeSegment, type RowWithNotes } from "#shared/company-index/segment.ts";
import { encodeNotes, encodeOverrides, type Versioned } from "#shared/company-index/versions.ts";
import { retiredIn } from "#shared/company-index/write/garbage-collection.ts";
import { cutIntoSegments, SEGMENT_ROWS, sortedByGeohash } from "#shared/company-index/write/order.ts";
import type { AppContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { TableBusy } from "#shared/errors.ts";

/** Maximum bytes of version overrides inside the part manifest. Larger overrides get separate items. */
const INLINE_BYTES = 2_048;

export type IndexContext = Pick<AppContext, "table" | "clock">;

export interface NewPart {
  /** Sorted by geohash. */
  readonly rows: Iterable<RowWithNotes>;
  readonly looseNotes: readonly NoteText[];
  /** The id and version of each prospect, also of deleted ones. Readers ignore lower versions of all these prospects in other parts. */
  readonly prospects: readonly Versioned[];
  readonly notes: readonly Versioned[];
}

export interface StoreOptions {
  /** Creates the ids of the part and its segments. A caller that knows them can delete the data if the part is never added to the index. */
  readonly newId?: () => string;
  /** Called before each segment is stored, for example to renew a lease. */
  readonly between?: () => Promise<void>;
}

/** Stores the data of a part. Does not add the part to the index. */
export const storePart = async (table: Table, companyId: number, built: NewPart): Promise<Part> =>
  completePart(table, companyId, await storeSegments(table, companyId, built.rows), built);

/** `rows` must be sorted by geohash. */
export async function storeSegments(
  table: Table,
  companyId: number,
  rows: Iterable<RowWithNotes>,
  { newId = newPieceId, between }: StoreOptions = {},
): Promise<SegmentEntry[]> {
  const segments: SegmentEntry[] = [];
  for (const { rows: count, zone, groups } of buildSegments(rows)) {
    await between?.();
    const id = newId();
    const [main, geo, text] = await Promise.all([
      storePiece(table, companyId, id, "main", groups.main),
      storePiece(table, companyId, id, "geo", groups.geo),
      storePiece(table, companyId, id, "text", groups.text),
    ]);
    segments.push({ id, rows: count, zone, counts: { main, geo, text } });
  }
  return segments;
}

/** Stores the data of a part that is not in its segments: the version overrides and the loose notes. Returns the part. */
export async function completePart(
  table: Table,
  companyId: number,
  segments: SegmentEntry[],
  { prospects, notes, looseNotes: loose }: Omit<NewPart, "rows">,
  { newId = newPieceId }: StoreOptions = {},
): Promise<Part> {
  const id = newId();
  const encoded = encodePartOverrides(prospects, notes, loose);
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
): Promise<number> {
  if (bytes === undefined) return 0;
  const { count, items } = cutPiece(companyId, owner, name, bytes);
  await table.batchPut(items);
  return count;
}

export interface Publication {
  readonly from: Head;
  /** Undefined if the list of parts does not change. */
  readonly part?: Part;
  /** The ids of all parts afterwards. */
  readonly manifest: readonly string[];
  /** Must contain the changes of all unflushed entries that the caller will delete. */
  readonly logged: Logged;
  readonly commit?: Commit | undefined;
}

/** Returns the new head, or undefined if another process has changed the head since `from` was read. */
export async function publish(
  { table, clock }: IndexContext,
  companyId: number,
  { from, part, manifest, logged, commit }: Publication,
): Promise<Head | undefined> {
  if (part !== undefined) {
    const replaced = from.manifest.filter((id) => !manifest.includes(id));
    await table.batchPut([partManifestItem(companyId, part, clock.now(), replaced)]);
  }
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
  if (current === undefined) return next;
  return part !== undefined && (await wasPublished(table, companyId, current, part.id)) ? next : undefined;
}

/** Returns true if the part was added to the index, even if newer parts have replaced it since. */
async function wasPublished(table: Table, companyId: number, { manifest }: Head, partId: string): Promise<boolean> {
  if (manifest.includes(partId)) return true;
  return retiredIn(manifest, await readPartManifests(table, companyId, "strong")).has(partId);
}

export async function discardPart(table: Table, companyId: number, part: Part): Promise<void> {
  await removePieces(table, companyId, piecesOf({ parts: [part] }));
  await table.batchRemove([keys.partManifest(companyId, part.id)]);
}

/** Only one segment is in memory at a time, so a part can be larger than the memory. */
export function* buildSegments(rows: Iterable<RowWithNotes>, maxRows = SEGMENT_ROWS) {
  for (const entries of cutIntoSegments(rows, maxRows)) {
    yield { rows: entries.length, zone: zoneOf(entries.map(({ row }) => row)), groups: encodeSegment(entries) };
  }
}

export const encodePartOverrides = (
  prospects: readonly Versioned[],
  notes: readonly Versioned[],
  looseNotes: readonly NoteText[],
) => ({
  overrides: prospects.length + notes.length === 0 ? undefined : encodeOverrides(prospects, notes),
  looseNotes: looseNotes.length === 0 ? undefined : encodeNotes(looseNotes),
});

const TRIES = 20;

/** Adds the rows of the demo and of tests as one part. They are few enough to be in memory, unlike those of an import. */
export async function addRows(
  context: IndexContext,
  companyId: number,
  rows: readonly RowWithNotes[],
  others?: Logged["others"],
  commit?: Commit,
): Promise<void> {
  const built = { rows: sortedByGeohash(rows), looseNotes: [], prospects: [], notes: [] };
  const part = await storePart(context.table, companyId, built);
  await addPart(context, companyId, part, { range: rangeOf(rows), ...(others && { others }) }, commit);
}

function rangeOf(rows: readonly RowWithNotes[]): IdRange | undefined {
  if (rows.length === 0) return undefined;
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { row } of rows) [from, to] = [Math.min(from, row.id), Math.max(to, row.id)];
  return { from, to };
}

/** Adds a stored part to the index. If every attempt fails, deletes the data of the part and throws TableBusy. */
export async function addPart(
  context: IndexContext,
  companyId: number,
  part: Part,
  logged: Logged,
  commit?: Commit,
): Promise<void> {
  const { table } = context;
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const { head } = await readUnflushed(table, companyId);
    const manifest = [...head.manifest, part.id];
    const moved = await publish(context, companyId, { from: head, part, manifest, logged, commit });
    if (moved !== undefined) return;
    await sleep(Math.random() * 20 * attempt);
  }
  await discardPart(table, companyId, part);
  throw new TableBusy(`the index of company ${companyId} kept changing`);
}
