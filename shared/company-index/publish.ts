/** Puts a new run into a company's index, in place of some of its runs or beside them, by one move of the head. */
import type { Clock } from "#shared/clock.ts";
import { buildAside, buildSegments } from "#shared/company-index/build.ts";
import { IndexUnreadable } from "#shared/company-index/compress.ts";
import { type Commit, type Head, type ManifestName, moveHead } from "#shared/company-index/head.ts";
import type { Manifest, Run, SegmentEntry } from "#shared/company-index/manifest.ts";
import type { NoteText } from "#shared/company-index/row.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import {
  cutPiece,
  findManifest,
  manifestItem,
  newPieceId,
  piecesOf,
  removePieces,
  type StoredPiece,
} from "#shared/company-index/store.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** What holds no more is kept this long for readers that began with it. No request runs half as long. */
export const RETIRED_MS = 60_000;

export interface IndexWorld {
  readonly table: Table;
  readonly clock: Clock;
}

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
  storeAside(table, companyId, await storeSegments(table, companyId, built.rows, newId), built, newId);

/** `rows` in the order of the curve. */
export async function storeSegments(
  table: Table,
  companyId: number,
  rows: Iterable<RowWithNotes>,
  newId = newPieceId,
): Promise<SegmentEntry[]> {
  const segments: SegmentEntry[] = [];
  for (const { rows: count, zone, groups } of buildSegments(rows)) {
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
export async function storeAside(
  table: Table,
  companyId: number,
  segments: SegmentEntry[],
  { prospects, notes, looseNotes: loose }: Omit<NewRun, "rows">,
  newId = newPieceId,
): Promise<Run> {
  const id = newId();
  const aside = buildAside(prospects, notes, loose);
  const [overrides, looseNotes] = await Promise.all([
    storePiece(table, companyId, id, "overrides", aside.overrides),
    storePiece(table, companyId, id, "notes", aside.looseNotes),
  ]);
  return { id, rows: segments.reduce((sum, { rows }) => sum + rows, 0), overrides, looseNotes, segments };
}

/** A run that holds nothing and hides nothing need not be in a manifest. */
export const isEmptyRun = ({ segments, overrides }: Run): boolean => segments.length + overrides === 0;

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

/** Makes `manifest` the one that holds. Gives the head as it is then, or undefined when somebody else moved it first. */
export async function publish(
  { table, clock }: IndexWorld,
  companyId: number,
  from: Head,
  manifest: Manifest,
  commit?: Commit,
): Promise<Head | undefined> {
  const name: ManifestName = { version: from.version + 1, id: newPieceId() };
  await table.batchPut([manifestItem(companyId, name, manifest)]);
  const now = clock.now();
  const kept = await removeRetired(table, companyId, from, now);
  const retired = from.manifest === null ? kept : [...kept, { ...from.manifest, at: now }];
  const next: Head = { ...from, version: name.version, manifest: name, retired };
  if (await moveHead(table, companyId, from, next, commit)) return next;
  await table.batchRemove([keys.manifest(companyId, name.version, name.id)]);
  return undefined;
}

/** Nothing led to them, or nothing will. */
export const discardRun = (table: Table, companyId: number, run: Run): Promise<void> =>
  removePieces(table, companyId, piecesOf({ runs: [run] }));

/**
 * A piece that a manifest leads to and its successor does not goes with the manifest. Gives those that are too young to go.
 * What an unreadable manifest led to is not known any more, and stays.
 */
async function removeRetired(table: Table, companyId: number, { retired, manifest }: Head, now: number) {
  const due = retired.filter(({ at }) => at < now - RETIRED_MS);
  for (const [i, name] of due.entries()) {
    const successor = retired[i + 1] ?? manifest;
    const [old, next] = await Promise.all([
      findReadable(table, companyId, name),
      successor === null ? undefined : findReadable(table, companyId, successor),
    ]);
    if (old === undefined || next === undefined) continue;
    const staying = new Set(piecesOf(next).map(({ owner }) => owner));
    const going = piecesOf(old).filter(({ owner }) => !staying.has(owner));
    await removePieces(table, companyId, going);
    await table.batchRemove([keys.manifest(companyId, name.version, name.id)]);
  }
  return retired.slice(due.length);
}

const findReadable = (table: Table, companyId: number, name: ManifestName): Promise<Manifest | undefined> =>
  findManifest(table, companyId, name).catch((error: unknown) => {
    if (error instanceof IndexUnreadable) return undefined;
    throw error;
  });
